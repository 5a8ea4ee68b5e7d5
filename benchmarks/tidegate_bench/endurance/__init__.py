"""``tidegate bench endurance``: the data path on state that is old, large or both."""
