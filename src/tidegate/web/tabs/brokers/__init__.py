"""The tab about brokers: whether they are healthy, and how many clients they have."""
