"""A Ctrl-C that cannot get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be. Where that is a finaliser or a callback of a
weak reference (the import system runs one per module), the exception is printed and forgotten, and whoever pressed
Ctrl-C waits for nothing. So it is raised again until it is on its way out; and from then on not once more, so that what
cleans up can finish.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN_S = 1.0
STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT and SIGTERM end the block with KeyboardInterrupt; from its end on, neither does anything any more."""
    for number in STOPPING:
        signal.signal(number, _begin)
    signal.signal(signal.SIGALRM, _interrupt)
    try:
        yield
    except Exception as error:
        # Some libraries make their own error of an interruption while they are loaded.
        if signal.getitimer(signal.ITIMER_REAL) != (0.0, 0.0):
            raise KeyboardInterrupt from error
        raise
    finally:
        for number in (*STOPPING, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _begin(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
    _interrupt(number, frame)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    if not _is_on_its_way(sys.exception()):
        raise KeyboardInterrupt


def _is_on_its_way(handled: BaseException | None) -> bool:
    """Whether what is being handled is an interruption, or came of cleaning up after one."""
    while handled is not None and not isinstance(handled, KeyboardInterrupt):
        handled = handled.__context__
    return handled is not None
