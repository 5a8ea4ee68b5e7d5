"""How complete the tables are, in words: dashboard, terminal and scripts."""

import msgspec
import pytest

from tidegate.cli.ledger_watch import report_of, rows_of
from tidegate.model.decisions import Mode
from tidegate.model.ledger import CompletenessState, Hole, HourSums
from tidegate.model.ledger_words import summary_of
from tidegate.model.view import ChainStates, View
from tidegate.pipeline.completeness.sentences import alarms_of
from tidegate.web.tabs.overview.completeness import completeness_html

NOW_S = 1_800_000_000.0  # a full hour
HOLE = Hole(
    device="pump <7>",
    boot=3,
    low=1204,
    high=1204,
    slice=2,
    gateway="gateway-1",
    since_s=NOW_S - 20,
    until_s=NOW_S - 10,
    named_s=NOW_S,
    seen="not in the log of slice 2, which holds nothing",
)
TOLD = (
    "device pump <7>, boot 3, seq 1204, acknowledged by gateway-1 between 07:59:40 UTC and 07:59:50 UTC, "
    "not in the log of slice 2, which holds nothing"
)


def state(*hours: HourSums, **more: object) -> CompletenessState:
    return msgspec.structs.replace(CompletenessState(checker="c", at_s=NOW_S - 5, hours=hours), **more)


def hour(before: int = 0, **sums: int) -> HourSums:
    return HourSums(hour_s=NOW_S - 3600 * before, **sums)


@pytest.mark.parametrize(
    ("seen", "sentence", "severity"),
    [
        pytest.param(
            None,
            "Nobody compares what was acknowledged with the tables: 'tidegate ledger watch' does.",
            "caution",
            id="nobody",
        ),
        pytest.param(
            state(),
            "No reading with an identity was acknowledged since 07:00:00 UTC.",
            "good",
            id="nothing",
        ),
        pytest.param(
            state(hour(2, acknowledged=9), hour(1, acknowledged=1000, stored=1000), hour(acknowledged=200, stored=200)),
            "Every reading acknowledged since 07:00:00 UTC is in the tables: 1,200.",
            "good",
            id="all of this hour and the last",
        ),
        pytest.param(
            state(hour(acknowledged=200, stored=198, rejected=2, unwatched=7)),
            "Every reading acknowledged since 07:00:00 UTC is in the tables: 200, 2 of them rejected; 7 could not be "
            "checked.",
            "good",
            id="some rejected, some unwatched",
        ),
        pytest.param(
            state(hour(acknowledged=200, stored=150), waits_for="INGEST has no source."),
            "200 readings were acknowledged since 07:00:00 UTC, of 50 it is not known yet (INGEST has no source).",
            "caution",
            id="not yet, and why",
        ),
        pytest.param(
            state(at_s=NOW_S - 300),
            "What was acknowledged has not been compared with the tables for 300 s.",
            "caution",
            id="a check that stopped",
        ),
        pytest.param(
            state(at_s=NOW_S - 3600, left=True),
            "What was acknowledged has not been compared with the tables since 07:00:00 UTC.",
            "caution",
            id="a check that a person ended",
        ),
        pytest.param(
            state(hour(acknowledged=2, stored=1, missing=1), holes=(HOLE,), at_s=NOW_S - 3600),
            f"1 acknowledged reading is in no table: {TOLD}.",
            "danger",
            id="one missing, whoever is late",
        ),
        pytest.param(
            state(hour(acknowledged=20, stored=10, missing=10), holes=(HOLE,)),
            f"10 acknowledged readings are in no table, last: {TOLD}.",
            "danger",
            id="more missing than the last hole has",
        ),
    ],
)
def test_one_sentence(seen: CompletenessState | None, sentence: str, severity: str) -> None:
    summary = summary_of(seen, NOW_S)
    assert (summary.sentence, summary.severity) == (sentence, severity)


def test_an_alarm_counts_readings_and_devices() -> None:
    other = msgspec.structs.replace(HOLE, device="b", low=5, high=9)
    (alarm,) = alarms_of([], [HOLE, other, other], NOW_S)
    assert alarm == (
        f"11 acknowledged readings are in no table: {TOLD}, and another device's; 'tidegate ledger watch' names all."
    )
    assert alarms_of([], [HOLE], NOW_S + 3600) == ()


def test_the_first_screen_says_it_where_somebody_compares() -> None:
    view = View(name="n", controller="c", leader=None, mode=Mode(), samples=(), decisions=(), chain=ChainStates())
    assert completeness_html(view, NOW_S) == ""
    missing = state(hour(acknowledged=1, missing=1), holes=(HOLE,))
    page = completeness_html(msgspec.structs.replace(view, completeness=missing), NOW_S)
    assert "<span class='severity danger'>■ Danger</span>" in page
    assert "pump &lt;7&gt;" in page


def test_a_verdict_needs_all_that_was_reported() -> None:
    whole = state(hour(acknowledged=3, stored=3), settled=7)
    assert report_of(whole, 7, 1.0).exit_status == 0
    assert report_of(whole, 8, 1.0).exit_status == 1, "a report is not decided yet"
    assert report_of(None, 0, 1.0).exit_status == 0, "nothing was acknowledged"
    assert report_of(None, 1, 1.0).exit_status == 1
    holed = state(hour(1, acknowledged=3, stored=2, missing=1), settled=7, holes=(HOLE,))
    report = report_of(holed, 7, 1.0)
    assert (report.exit_status, report.checks[0].value) == (1, 1)


def test_hours_are_shown_newest_first() -> None:
    first, second = rows_of(state(hour(1, acknowledged=5, stored=2, rejected=1, missing=1), hour(nameless=4)))
    assert (first["hour (UTC)"], first["no identity"]) == ("2027-01-15 08:00", 4)
    assert [second[name] for name in ("acknowledged", "stored", "rejected", "missing", "not yet")] == [5, 2, 1, 1, 1]
