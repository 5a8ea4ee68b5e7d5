"""Waiting for something that nobody announces: a condition, or a listener that answers."""

import socket
import time
from collections.abc import Callable

LOOK_S = 0.1


def wait_until(condition: Callable[[], bool], seconds_max: float, look_s: float = LOOK_S) -> bool:
    """Whether the condition comes to hold in time; it is looked at once at least. What it raises ends the wait."""
    deadline_s = time.monotonic() + seconds_max
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(look_s)
    return True


def answers(address: tuple[str, int], timeout_s: float = 0.5) -> bool:
    """Whether somebody accepts connections there."""
    try:
        with socket.create_connection(address, timeout=timeout_s):
            return True
    except OSError:
        return False
