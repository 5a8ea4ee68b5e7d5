"""One process of a gateway as its supervisor sees it, and how soon one that died is replaced."""

import signal
import subprocess
import sys
import time

import msgspec

from tidegate.gateway.processes.orders import Order

# One that lived this long has earned a replacement at once.
PROVEN_S = 10.0
PAUSE_S_MIN = 0.25
PAUSE_S_MAX = 5.0


def pause_s(lived_s: float, before_s: float | None) -> float:
    """How long to wait before a replacement starts: not at first, then twice as long each time that one dies young."""
    if before_s is None or lived_s >= PROVEN_S:
        return 0.0
    return min(PAUSE_S_MAX, max(PAUSE_S_MIN, 2 * before_s))


class Process:
    def __init__(self, order: Order, number: int, fds: list[int]) -> None:
        self.number = number
        self.slot = order.slot
        self.listener_set = order.listener_set
        self.leaves = False  # it was told to
        self.started_s = time.monotonic()
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "tidegate.gateway.processes.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=fds,
        )
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(msgspec.json.encode(order))
            self._popen.stdin.close()
        except BrokenPipeError:
            pass  # it died at once: that is seen soon

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    @property
    def lived_s(self) -> float:
        return time.monotonic() - self.started_s

    def tell(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()

    def last_words(self) -> str:
        """How it ended, in words."""
        assert self._popen.stdout is not None
        with self._popen.stdout as stdout:
            said = stdout.read().decode(errors="replace").strip()
        code = self._popen.wait()
        if said:
            return said.rstrip(".")
        return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with code {code}"
