"""What a JVM really holds: its heap right after a full collection.

A heap's use grows until its collector has a reason to look; only after a full collection does it say what is held. The
JVM is asked over its own attach socket, as ``jcmd`` does: the small runtime that Spark runs on has no such tool.
"""

import os
import re
import signal
import socket
import time
from pathlib import Path

ATTACH_S_MAX = 10.0
_USED = re.compile(r"(?:DefNew|Tenured)\D*total \d+K, used (\d+)K")


def heap_mib_after_collection(pid: int) -> float:
    """Collect everything that can be, and say what is left."""
    _ask(pid, "GC.run")
    return used_mib(_ask(pid, "GC.heap_info"))


def used_mib(said: str) -> float:
    """All generations of a serial collector's heap, as ``GC.heap_info`` describes it."""
    return sum(map(int, _USED.findall(said))) / 1024


def _ask(pid: int, command: str) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ATTACH_S_MAX)
        connection.connect(str(_attached(pid)))
        connection.sendall(b"".join(word.encode() + b"\0" for word in ("1", "jcmd", command, "", "")))
        said = b""
        while chunk := connection.recv(65_536):
            said += chunk
    return said.decode(errors="replace")


def _attached(pid: int) -> Path:
    """Where it listens; it does so once it has been asked to with a file and a signal."""
    place = Path(f"/proc/{pid}/root/tmp/.java_pid{pid}")
    if place.exists():
        return place
    asked = Path(f"/proc/{pid}/cwd/.attach_pid{pid}")
    asked.touch()
    try:
        os.kill(pid, signal.SIGQUIT)
        deadline_s = time.monotonic() + ATTACH_S_MAX
        while not place.exists():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"The JVM {pid} does not listen.")
            time.sleep(0.05)
    finally:
        asked.unlink(missing_ok=True)
    return place
