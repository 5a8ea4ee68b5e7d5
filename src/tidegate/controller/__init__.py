"""The asyncio shell around the loop: sensors, executors, the leader's lease, the audit log."""
