"""``tidegate bench storm``: every client connects again at once."""
