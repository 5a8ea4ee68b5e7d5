"""Something that has to be asked regularly while a benchmark waits for something else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_S = 0.5


@contextmanager
def asked_regularly(ask: Callable[[], object], every_s: float = EVERY_S) -> Iterator[None]:
    """Ask in a thread until the block is left, and then once more. What went wrong with it is raised then."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def keep_asking() -> None:
        try:
            while not ended.wait(every_s):
                ask()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=keep_asking, name="asked regularly")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]
    ask()
