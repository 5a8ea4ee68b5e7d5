"""Which broker a new connection goes to."""
