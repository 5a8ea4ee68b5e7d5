"""Frozen values of the domain. This package imports nothing else of Tidegate's."""
