"""``tidegate explain`` over an audit of which parts cannot be read: those are counted and named, and hide no other."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from nowhere import NOWHERE

from tidegate.bus.audit import DAMAGED_MAX, AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT
from tidegate.bus.installation import save_installation
from tidegate.bus.journals import Ends, JournalReader, Record
from tidegate.bus.wire import Frame, Wire
from tidegate.cli.main import run
from tidegate.model.actions import ScaleNodes
from tidegate.model.decisions import Decision
from tidegate.model.intents import Reason

JUNK = b"junk"
Keep = Callable[[Sequence[bytes]], None]


def written(plan: int) -> bytes:
    decision = Decision(
        at_s=9.0,
        controller="c",
        plan=str(plan),
        round=str(plan),
        by="nodes",
        phase="",
        sentence=f"Decision number {plan}.",
        acted=True,
        action=ScaleNodes(nodes_wanted=plan),
        reason=Reason(rule="so", rejected="nothing", because="so"),
    )
    return msgspec.json.encode(decision)


@pytest.fixture
def keep(monkeypatch: pytest.MonkeyPatch) -> Keep:
    """Let the journal have these records, the first of which are gone."""
    first = 3

    def kept(contents: Sequence[bytes]) -> None:
        last = first + len(contents) - 1

        def read(_: object, sequences: Sequence[int]) -> list[Record[Decision]]:
            there = [number for number in sequences if first <= number <= last]
            return [Record(number, 5.0, AUDIT.decode(contents[number - first])) for number in there]

        monkeypatch.setattr(JournalReader, "ends", lambda _: Ends(first, last))
        monkeypatch.setattr(JournalReader, "read", read)

    return kept


@pytest.fixture
def state(tmp_path: Path) -> Path:
    save_installation(NOWHERE, tmp_path)
    return tmp_path


def explained(state: Path, *arguments: str) -> int:
    return run(["explain", *arguments, "--state", str(state)])


def test_as_many_decisions_as_asked_for_are_shown_whatever_stands_between(keep: Keep) -> None:
    with Bus(["nats://nowhere"]) as bus:
        audit = AuditLog(bus)
        keep([written(1), written(2), JUNK, written(3), *[JUNK] * 300])
        assert [one.plan for one in audit.last(2)] == ["2", "3"]
        found = audit.newest(2)
        assert found.damaged == (5, *range(7, 307)), "what is older than the oldest one shown is not looked at"
        assert [one.plan for one in audit.newest(9).records] == ["1", "2", "3"]
        assert audit.last(0) == ()
        assert [one.plan for one in audit.after(4)] == ["3"]
        keep([written(1), *[JUNK] * 2 * DAMAGED_MAX])
        assert len(audit.newest(1).damaged) == DAMAGED_MAX, "a leader that looks has no time for all of them"


def test_damaged_records_are_counted_and_named(keep: Keep, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep([written(1), *[JUNK] * 12])
    assert explained(state, "--last", "10") == 0
    told = capsys.readouterr().out
    assert "Decision number 1." in told
    assert "Not shown: 12 damaged record(s) of the stream AUDIT, numbers 4 to 15." in told
    assert explained(state, "--json") == 0
    assert json.loads(capsys.readouterr().out)["damaged"] == list(range(4, 16))
    keep([JUNK])
    assert explained(state) == 0
    told = capsys.readouterr().out
    assert told.startswith("No decision can be read.\nNot shown: 1 damaged record(s) of the stream AUDIT, number 3.\n")
    keep([])
    assert explained(state) == 0
    assert capsys.readouterr().out == "Nothing has been decided yet.\n"


def test_a_decision_that_may_be_a_damaged_record_is_not_denied(
    keep: Keep, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep([written(1), JUNK])
    assert explained(state, "2") == 2
    told = capsys.readouterr().err
    assert "Decision 2 is not in the audit, or is among those that are not shown (1 damaged record(s)" in told
    assert explained(state, "1") == 0


@pytest.mark.parametrize(
    ("headers", "said"),
    [(b"NATS/1.0\r\n", "looked at is damaged"), (b"NATS/1.0 404 Not Found\r\n", "looked at is not kept any more")],
)
def test_a_damaged_round_is_not_called_gone(
    keep: Keep,
    state: Path,
    headers: bytes,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep([written(1)])
    monkeypatch.setattr(Wire, "request", lambda *_: Frame(b"", 0, None, headers, b'{"at_s":1}'))
    assert explained(state, "1", "--replay") == 2
    assert f"What decision 1 {said}" in capsys.readouterr().err
