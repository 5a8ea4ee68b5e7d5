"""Processes that this one starts: watched, told things, and ended with everything that they started."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tidegate.local.process import LocalProcess
from tidegate.local.talking import TalkingProcess
from tidegate.local.waiting import wait_until
from tidegate.model.errors import TidegateError
from tidegate_bench.rig.children import Child

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(started.pid, flush=True)
time.sleep(60)
"""
ECHO = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"heard": line.strip()}), flush=True)
    if line.strip() == "quit":
        break
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_there(pid: int) -> bool:
    """Not even as a zombie that nobody has waited for."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def test_its_log_is_private_and_ends_with_the_reason(tmp_path: Path) -> None:
    process = LocalProcess("one", python("raise SystemExit('tidegate: no settings')"), log=tmp_path / "one.log")
    assert (process.pid, process.status) == (None, None)
    process.start()
    assert process.has_ended(20)
    assert (process.status, process.is_running, process.is_gone) == (1, False, True)
    assert process.last_words() == "no settings"
    assert (tmp_path / "one.log").stat().st_mode & 0o777 == 0o600


def test_a_kill_is_seen_in_its_status() -> None:
    process = LocalProcess("one", python("import time; time.sleep(60)"), log=None)
    process.start()
    assert process.is_running
    process.kill()
    assert process.status == -signal.SIGKILL


def test_what_does_not_stop_is_ended_with_what_it_started(tmp_path: Path) -> None:
    process = LocalProcess("stubborn", python(STUBBORN), log=tmp_path / "log")
    process.start()
    assert wait_until(lambda: (tmp_path / "log").read_text().endswith("\n"), 20)
    started = int((tmp_path / "log").read_text())
    process.stop(seconds_max=0.2)
    assert process.status == -signal.SIGKILL
    assert wait_until(lambda: not is_there(started), 10)


def test_the_environment_is_ours_and_what_was_added(tmp_path: Path) -> None:
    code = "import os; print(os.environ['ADDED'], os.environ['PATH'])"
    process = LocalProcess("one", python(code), log=tmp_path / "log", environment={"ADDED": "yes"})
    process.start()
    assert process.has_ended(20)
    assert process.last_words() == f"yes {os.environ['PATH']}"


def test_the_last_answer_is_there_when_it_has_ended() -> None:
    process = TalkingProcess("echo", python(ECHO), log=None)
    process.start()
    for word in ("one", "two", "quit"):
        process.tell(word)
    assert process.last_answer(20) == {"heard": "quit"}
    process.stop()
    assert process.last_answer(0) == {"heard": "quit"}


def test_no_answer_is_a_sentence_that_says_where_to_look(tmp_path: Path) -> None:
    process = TalkingProcess("mute", python("raise SystemExit(3)"), log=tmp_path / "mute.log")
    process.start()
    with pytest.raises(TidegateError, match=r"^The process mute ended without an answer: see .*mute\.log\.$"):
        process.last_answer(20)
    process.stop()
    late = TalkingProcess("late", python("import time; time.sleep(60)"), log=None)
    late.start()
    with pytest.raises(TidegateError, match=r"late did not answer within 0 s: its messages above say why\.$"):
        late.last_answer(0.05)
    late.stop()


def test_a_child_of_a_benchmark_is_found_and_its_silence_is_explained(tmp_path: Path) -> None:
    log = tmp_path / "load.log"
    options = {"state": tmp_path, "acks": tmp_path / "acks", "count": 1}
    with Child("rig.steady_load", "--json", log=log, **options) as child:
        with pytest.raises(TidegateError, match=r"rig\.steady_load ended without an answer"):
            child.answer(20)
        assert "No running installation" in child.last_words()
    assert not child.is_running


def test_waiting_looks_once_at_least_and_stops_in_time() -> None:
    assert wait_until(lambda: True, 0)
    began_s = time.monotonic()
    assert not wait_until(lambda: False, 0.1, look_s=0.01)
    assert 0.1 <= time.monotonic() - began_s < 2
