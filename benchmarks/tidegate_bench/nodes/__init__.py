"""Slices that are moved between running processing nodes: ``moves``."""
