"""Moments as people read them."""

from datetime import UTC, datetime


def clock_time(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S} UTC"
