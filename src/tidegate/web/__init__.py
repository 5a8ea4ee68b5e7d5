"""API, dashboard and metrics, all behind a token."""
