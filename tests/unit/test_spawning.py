"""What a process started, found and ended with all below it, paused or not."""

import subprocess
import sys
import time

CODE = """
import os, signal, subprocess, sys, time
from tidegate.machine.spawning import kill_descendants, paused_descendants
child = "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
child += "print(p.pid, flush=True); time.sleep(60)"
started = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE, text=True)
grandchild = int(started.stdout.readline())
assert paused_descendants() == []
os.kill(grandchild, signal.SIGSTOP)
while not paused_descendants():
    time.sleep(0.01)
(paused,) = paused_descendants()
assert paused.endswith(f" {grandchild}"), paused
kill_descendants()
def gone(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
assert gone(started.pid) and gone(grandchild)
"""


def test_all_that_a_process_started_is_ended_also_what_is_paused() -> None:
    began_s = time.monotonic()
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began_s < 40, "nobody slept to the end"
