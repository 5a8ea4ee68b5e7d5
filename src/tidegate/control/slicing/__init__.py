"""Which processing node works on which slice, and how a slice changes hands."""
