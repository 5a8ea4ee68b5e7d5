"""What the dashboard, the API and the metrics show, before it has a shape: the newest view and what follows from it."""
