"""Who gets in, what it may do, what that costs, how fast it is thrown out: ``tidegate bench identity``."""
