"""``tidegate bench gateway``: what the gateway costs beside HAProxy."""
