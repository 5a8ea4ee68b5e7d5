"""Who gets in, what it may do then, what that costs, and how fast somebody is thrown out: ``tidegate bench identity``."""
