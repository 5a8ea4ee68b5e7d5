"""Times for people, in UTC: parts of an installation run in many zones."""

from datetime import UTC, datetime


def clock_time(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S} UTC"


def date_and_time(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
