"""Children that end with the process that started them, however it ends."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1


class Spawner:
    """Starts children that the kernel kills when this process dies, also by kill -9.

    Linux ties that signal (PR_SET_PDEATHSIG) to the *thread* that forked, not to the process: servers that a
    short-lived thread started would die with it. So one thread of the spawner's own does all the forking and
    lives until ``close``. SIGKILL, because a paused child would never see SIGTERM; what was acknowledged
    survives it. Elsewhere than on Linux there is no such signal, and an orderly stop must do.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tidegate-servers")
        # Looked up before any fork: between fork and exec nothing may be imported or allocated at length.
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None
        self._parent = os.getpid()

    def _die_with_parent(self) -> None:
        if self._prctl is not None:
            self._prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != self._parent:  # it died before the line above
                os._exit(1)

    def spawn(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        return self._thread.submit(self._spawn, command, log).result()

    def _spawn(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                # Ctrl-C at the terminal reaches the parent only, which then stops its servers in order.
                start_new_session=True,
                preexec_fn=self._die_with_parent,  # noqa: PLW1509 - see the class
            )
        finally:
            os.close(descriptor)

    def close(self) -> None:
        self._thread.shutdown()


def paused_descendants() -> list[str]:
    """What this process started and somebody paused, by name and number."""
    found = []
    for process in _descendants():
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_STOPPED:
                found.append(f"{process.name()} {process.pid}")
    return found


def kill_descendants() -> None:
    """SIGKILL to all that this process started, and to what that started: a paused one hears nothing else.

    Again until there is nobody left: one of them may have forked between the look and the signal.
    """
    while left := _descendants():
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=1.0)


def _descendants() -> list[psutil.Process]:
    """Without those that have ended and wait for their parent to notice."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
