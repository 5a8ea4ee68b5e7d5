"""``tidegate bench chain``: what the whole chain sustains, from devices to tables, and which part bounds it."""
