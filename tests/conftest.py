"""Settings that all tests share."""

from hypothesis import settings

# The machine is shared and slow at times: how long one example takes says nothing about the code.
settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")
