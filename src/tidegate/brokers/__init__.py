"""Brokers behind one port: what the rest of the system needs of a broker, whichever it is."""
