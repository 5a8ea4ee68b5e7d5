"""One device's connection without IO and without a clock: bytes in, bytes out."""
