"""Keeping the tables small while they grow: their log, their files, their oldest days.

``planning`` and ``keys`` decide and are pure, and so is the first half of ``log``; ``table`` commits under a fence,
``merging`` writes, ``vacuum`` removes. ``care`` does all of it to one table, ``maintainer`` to every table for ever,
paced by ``pacing``.
"""
