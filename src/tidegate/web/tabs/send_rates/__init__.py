"""The tab about how often devices send: what they are asked for, why, and what it is worth."""
