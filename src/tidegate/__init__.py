"""Tidegate keeps an IoT platform standing when its devices flood it."""

__version__ = "0.1.0"
