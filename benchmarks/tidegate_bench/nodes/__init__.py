"""Processing nodes that are moved, killed and frozen: ``moves`` and ``crashes``."""
