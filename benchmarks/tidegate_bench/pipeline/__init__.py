"""``tidegate bench pipeline``: from the log into the tables."""
