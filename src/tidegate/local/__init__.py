"""The whole system on one machine: which processes it consists of, how they start, and how they end."""
