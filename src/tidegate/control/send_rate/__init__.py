"""How often devices may send: one interface, one file per policy."""
