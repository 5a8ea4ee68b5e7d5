"""An interruption arrives however it is met; processes of their own, because a signal belongs to a whole process."""

import os
import signal
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, threading, time
from tidegate.machine.interrupting import interruptible

def press(number=signal.SIGINT):
    os.kill(os.getpid(), number)

class Finalised:
    def __del__(self):
        press()
        time.sleep(0.1)
"""

SWALLOWED = """
try:
    with interruptible():
        Finalised()
        print("swallowed", flush=True)
        time.sleep(20)
except KeyboardInterrupt:
    print("ended")
"""

CLEANED = """
try:
    with interruptible():
        try:
            press(signal.SIGTERM)
            time.sleep(20)
        finally:
            press()
            try:
                raise OSError
            except OSError:
                time.sleep(2.5)
            print("cleaned", flush=True)
except KeyboardInterrupt:
    time.sleep(1.5)
    press()
    print("ended")
"""

DISGUISED = """
try:
    with interruptible():
        try:
            press()
            time.sleep(20)
        except KeyboardInterrupt:
            raise ImportError("see the notes on installing")
except KeyboardInterrupt:
    print("ended")
"""

OWN_ERROR = """
try:
    with interruptible():
        raise ValueError
except ValueError:
    print("ended")
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(SWALLOWED, ["swallowed", "ended"], id="one that a finaliser swallows comes again"),
        pytest.param(CLEANED, ["cleaned", "ended"], id="cleaning up is not interrupted"),
        pytest.param(DISGUISED, ["ended"], id="another error for it is still an interruption"),
        pytest.param(OWN_ERROR, ["ended"], id="an error that nobody asked for stays itself"),
    ],
)
def test_an_interruption(code: str, said: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=15, check=False, env=os.environ
    )
    assert done.stdout.split() == said, done.stderr
    assert done.returncode != -signal.SIGALRM
