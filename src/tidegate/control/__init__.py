"""The algorithms, pure: no clock, no IO, no logging. The simulator and the live system run the same objects."""
