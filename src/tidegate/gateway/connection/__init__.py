"""One device's connection without IO and without a clock: bytes in, bytes out. ``session.py`` is where to begin."""
