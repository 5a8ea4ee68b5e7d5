"""``tidegate bench hostile``: what clients must not do to a gateway, done to it, while others go on working."""
