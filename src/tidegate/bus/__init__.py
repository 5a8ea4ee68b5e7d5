"""The control bus: its wire client, the catalogue of all documents on it, leases, watches, and the audit log."""
