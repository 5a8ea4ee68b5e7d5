"""Every decision of a run made again from the audit alone."""
