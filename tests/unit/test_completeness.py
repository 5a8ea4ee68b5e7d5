"""The check of acknowledgements against tables: real tables, a journal and a log as far as it asks them."""

from pathlib import Path

import pyarrow as pa
import pytest
from checking import START_S, Stand, batch, named, sums
from deltalake import DeltaTable

from tidegate.brokers.nats.attribution import slice_of
from tidegate.model.positions import position
from tidegate.model.readings import IDENTIFIED_BYTES
from tidegate.pipeline.completeness import book as books
from tidegate.pipeline.completeness import stored
from tidegate.pipeline.completeness.pages import HOUR_S
from tidegate.pipeline.completeness.rounds import UNCHECKED_S_MAX
from tidegate.pipeline.completeness.saving import FILE_NAME
from tidegate.pipeline.tables.tables import Step
from tidegate.pipeline.tables.writing import write_by_date
from tidegate.pipeline.transforms.parsing import KEPT_PAYLOAD_BYTES, parse


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_what_is_stored_before_or_after_its_report_is_accounted_for(stand: Stand) -> None:
    stand.publish("a", 1, 2, 3)
    stand.commit()
    stand.step()
    stand.report("a", (1, 1, 3))
    stand.report("b", (1, 7, 9))
    state = stand.step()
    assert sums(state) == (6, 3, 0, 0, 3)
    stand.publish("b", 7, 8, 9)
    stand.commit()
    state = stand.step(3)
    assert sums(state) == (6, 6, 0, 0, 0)
    assert (state.holes, state.alarms, state.waits_for, state.oldest_s) == ((), (), None, None)


def test_a_reading_that_the_brokers_lost_is_named_with_all_that_is_known_of_it(stand: Stand) -> None:
    stand.publish("a", 1, 2, 4, 5)
    stand.report("a", (1, 1, 5))
    stand.commit()
    stand.log.first[stand.log.slice_of("a")] = 4
    assert named(stand.step()) == [], "it is looked for twice"
    state = stand.step()
    assert named(state) == [("a", 1, 3, 3)]
    assert sums(state) == (5, 4, 0, 1, 0)
    (hole,) = state.holes
    slice_ = stand.log.slice_of("a")
    assert (hole.gateway, hole.slice, hole.until_s, hole.since_s) == ("g-1", slice_, START_S, START_S - 10)
    assert hole.seen == f"not in the log of slice {slice_}, which holds sequences 4 to 4"
    assert state.alarms == (
        "1 acknowledged reading is in no table: device a, boot 1, seq 3, acknowledged by g-1 between 07:59:50 UTC and "
        f"08:00:00 UTC, {hole.seen}; 'tidegate ledger watch' names all.",
    )
    stand.now_s += 3_600
    assert stand.step().alarms == (), "an alarm is for those who can still do something"
    assert named(stand.step()) == [("a", 1, 3, 3)]


def test_a_pipeline_that_lags_misses_nothing(stand: Stand) -> None:
    stand.publish("a", 1, 2)
    stand.report("a", (1, 1, 2))
    state = stand.step(30)
    assert (named(state), sums(state)) == ([], (2, 0, 0, 0, 2))
    assert state.oldest_s == START_S - 10


def test_what_has_not_reached_its_slice_may_be_anywhere_in_it(stand: Stand) -> None:
    """Acknowledged and still on its way through the brokers, while the tables have all that the slice has."""
    stand.publish("a", 1)
    stand.commit()
    stand.log.upstream = 2
    stand.report("a", (1, 1, 3))
    assert named(stand.step(5)) == []
    stand.publish("a", 2)
    stand.log.upstream = 1
    stand.commit()
    assert named(stand.step(5)) == []
    stand.log.upstream = 0
    assert named(stand.step(3)) == [("a", 1, 3, 3)]


@pytest.mark.parametrize("alarm", ["INGEST does not hear from $MQTT_msgs yet."])
def test_while_the_log_cannot_say_what_waits_nothing_is_missed(stand: Stand, alarm: str) -> None:
    stand.report("a", (1, 1, 3))
    stand.log.alarms = (alarm,)
    state = stand.step(5)
    assert (named(state), state.waits_for) == ([], alarm)
    stand.log.alarms = ()
    assert named(stand.step(3)) == [("a", 1, 1, 3)]


def test_a_log_that_came_back_shorter_settles_nothing_until_the_tables_have_taken_it_up(stand: Stand) -> None:
    stand.publish("a", 1, 2, 3)
    stand.commit()
    stand.step()
    del stand.log.messages[stand.log.slice_of("a")][1:]
    stand.report("a", (1, 4, 4))
    assert named(stand.step(5)) == []


def test_a_log_that_was_set_back_is_checked_on_as_soon_as_the_tables_go_on(stand: Stand) -> None:
    slice_ = stand.log.slice_of("a")
    stand.publish("a", 1, 2, 3)
    stand.commit()
    stand.step()
    stand.tables.claim({slice_: 2}, lambda *_: position(1, 0))
    stand.log.messages[slice_] = []
    stand.publish("a", 4, 5)
    rows = parse(batch(slice_, position(1, 0), stand.log.messages[slice_])).readings
    adds = write_by_date(stand.settings, "readings", pa.Table.from_batches([rows]))
    stand.tables.readings.commit(adds, {slice_: Step(2, position(1, 0), position(1, 2))})
    stand.report("a", (1, 4, 6))  # the last one was lost
    assert sums(stand.step())[:2] == (3, 2)
    assert named(stand.step(3)) == [("a", 1, 6, 6)]


def test_what_was_rejected_is_accounted_for(stand: Stand) -> None:
    cut_off = b'{"boot":1,"seq":4,"value":"' + b"x" * 2_000 + b'"}'
    stand.publish("a", 1, payload=b'{"boot":1,"seq":1,"value":"high"}')
    stand.publish("a", 2, payload=b'{"boot":1,"seq":2}')
    stand.publish("a", 3, payload=b'{"boot":1,"seq":3,"value":1')
    stand.publish("a", 4, payload=cut_off)
    stand.publish("a", 5)
    stand.commit()
    stand.step()
    stand.report("a", (1, 1, 5))
    state = stand.step(3)
    assert (named(state), sums(state)) == ([], (5, 1, 4, 0, 0))


def test_what_a_gateway_notes_by_its_identity_alone_is_kept_whole_when_it_is_rejected() -> None:
    assert IDENTIFIED_BYTES <= KEPT_PAYLOAD_BYTES


def test_sequences_with_gaps_hopping_boots_and_repeats_are_no_holes(stand: Stand) -> None:
    stand.publish("a", *range(0, 40, 2), boot=7)
    stand.publish("a", *range(5), boot=3)
    stand.commit()
    stand.report("a", *((7, seq, seq) for seq in range(0, 40, 2)), (3, 0, 4))
    stand.report("a", (7, 0, 0), (3, 0, 4), gateway="g-2")
    stand.step(3)
    stand.restart()
    stand.report("a", (7, 38, 38), (3, 2, 2))
    state = stand.step(3)
    assert (named(state), sums(state)[3:]) == ([], (0, 0))


def test_a_check_that_begins_again_goes_on_where_it_was(stand: Stand) -> None:
    stand.publish("a", 1, 3)
    stand.report("a", (1, 1, 3))
    stand.commit()
    stand.step(4)
    stand.report("b", (1, 1, 1))
    stand.publish("b", 1)
    stand.step()
    before = stand.step()
    stand.round.save()
    stand.restart()
    stand.commit()
    state = stand.step(3)
    assert (named(before), named(state)) == ([("a", 1, 2, 2)], [("a", 1, 2, 2)])
    assert sums(state) == (4, 3, 0, 1, 0)
    assert state.reports == 2


@pytest.mark.parametrize("damage", [None, b"", b"\xff\xff", b"\x80"])
def test_where_its_own_state_is_lost_everything_in_the_journal_is_looked_up(stand: Stand, damage: bytes | None) -> None:
    stand.publish("a", 1, 3)
    stand.publish("b", 1, payload=b'{"boot":1,"seq":1}')
    stand.report("a", (1, 1, 3))
    stand.report("b", (1, 1, 1))
    stand.commit()
    stand.step(4)
    stand.round.save()
    path = stand.directory / FILE_NAME
    path.unlink() if damage is None else path.write_bytes(damage)
    stand.restart()
    state = stand.step(3)
    assert (named(state), sums(state)) == ([("a", 1, 2, 2)], (4, 2, 1, 1, 0))


def test_maintenance_changes_nothing(stand: Stand) -> None:
    """Compaction, an old log and old files that are gone: the check reads rows by their offsets."""
    for seq in range(1, 6):
        stand.publish("a", seq)
        stand.commit()
        if seq == 2:
            stand.step()
    table = DeltaTable(str(stand.directory / "readings"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
    table.create_checkpoint()
    for entry in sorted((stand.directory / "readings" / "_delta_log").glob("*.json"))[:-1]:
        entry.unlink()
    stand.restart()
    stand.report("a", (1, 1, 5))
    stand.report("a", (1, 6, 6))
    state = stand.step(3)
    assert (named(state), sums(state)) == ([("a", 1, 6, 6)], (6, 5, 0, 1, 0))


def test_what_comes_after_all_is_no_longer_missing(stand: Stand) -> None:
    stand.report("a", (1, 1, 3))
    assert named(stand.step(3)) == [("a", 1, 1, 3)]
    stand.publish("a", 2)
    stand.commit()
    state = stand.step()
    assert named(state) == [("a", 1, 1, 1), ("a", 1, 3, 3)]
    assert (sums(state), state.withdrawn) == ((3, 1, 0, 2, 0), 1)


def test_a_row_that_was_overseen_is_found_when_it_is_looked_for_again(stand: Stand) -> None:
    stand.report("a", (1, 1, 1))
    assert named(stand.step(3)) == [("a", 1, 1, 1)]
    stand.publish("a", 1)
    stand.commit()
    stand.round._positions = stand.round._sources.tables.since({}).positions
    assert named(stand.step()) == [("a", 1, 1, 1)]
    stand.now_s += 300
    assert named(stand.step()) == []


def test_the_log_is_asked_for_what_the_tables_skipped(stand: Stand) -> None:
    stand.publish("a", 1, 2)
    slice_ = stand.log.slice_of("a")
    stand.report("a", (1, 1, 3))
    parsed = parse(batch(slice_, 1, stand.log.messages[slice_][1:]))
    adds = write_by_date(stand.settings, "readings", pa.Table.from_batches([parsed.readings]))
    stand.tables.rejected.commit([], {slice_: Step(1, 0, 2)})
    stand.tables.readings.commit(adds, {slice_: Step(1, 0, 2)})
    first, third = stand.step(3).holes
    assert first.seen == f"in the log of slice {slice_} at sequence 1, 08:00:00 UTC"
    assert third.seen == f"not in the log of slice {slice_}, which holds sequences 1 to 2"


def test_a_log_with_a_gap_cannot_be_searched_and_the_hole_is_named_all_the_same(stand: Stand) -> None:
    stand.publish("a", 1)
    stand.commit()
    stand.report("a", (1, 2, 2))
    stand.log.has_gap = True
    (hole,) = stand.step(3).holes
    assert hole.seen == f"the log of slice {hole.slice} has a gap and cannot be searched"


def test_reports_that_are_gone_or_damaged_are_counted(stand: Stand) -> None:
    for _ in range(3):
        stand.report("a", nameless=1)
    stand.step()
    for _ in range(4):
        stand.report("a", unwatched=2)
    stand.journal.append(None)
    for number in (1, 2, 3, 4, 5):
        del stand.journal.records[number]
    state = stand.step()
    assert (state.reports, state.reports_lost, state.reports_behind) == (8, 3, 0)
    (hour,) = state.hours
    assert (hour.nameless, hour.unwatched) == (3, 4)
    assert state.alarms[0].startswith("4 readings acknowledged within the last two hours cannot be checked")


def test_a_journal_that_nobody_has_written_to_has_lost_nothing(stand: Stand) -> None:
    assert (stand.step(2).reports_lost, stand.journal.exists) == (0, True)
    stand.report("a", nameless=1)
    state = stand.step()
    assert (state.reports, state.reports_lost) == (1, 0)


def test_a_journal_that_begins_anew_is_read_from_its_beginning(stand: Stand) -> None:
    for _ in range(3):
        stand.report("a", (1, 1, 1))
    stand.publish("a", 1)
    stand.step(2)
    stand.journal.records.clear()
    stand.journal.last, stand.journal.created = 0, "second"
    stand.report("b", (1, 1, 1))
    state = stand.step(2)
    assert (state.reports, named(state)) == (1, [("b", 1, 1, 1)]), "what is on its way is still not missing"
    stand.commit()
    assert named(stand.step(2)) == [("b", 1, 1, 1)]


def test_a_step_that_fails_says_why_and_is_tried_again(stand: Stand) -> None:
    stand.report("a", (1, 1, 1))
    stand.journal.away = True
    assert stand.step().waits_for == "The bus is away."
    stand.journal.away = False
    assert named(stand.step(2)) == [("a", 1, 1, 1)]


def test_what_can_not_be_checked_for_a_day_is_given_up_and_said(stand: Stand) -> None:
    stand.publish("a", 1)
    stand.report("a", (1, 1, 2))
    stand.step()
    stand.now_s += UNCHECKED_S_MAX
    stand.journal.now_s += UNCHECKED_S_MAX
    (hour, *_) = stand.step().hours
    assert (hour.acknowledged, hour.unwatched) == (0, 2)
    stand.log.messages[stand.log.slice_of("a")].clear()
    assert named(stand.step(3)) == []


def test_hours_are_those_of_the_bus_and_only_two_days_are_told(stand: Stand) -> None:
    for hour in range(60):
        stand.journal.now_s = START_S + hour * HOUR_S
        stand.report("a", nameless=hour + 1)
    hours = stand.step().hours
    assert [hour.nameless for hour in hours] == list(range(13, 61))
    assert hours[-1].hour_s == START_S + 59 * HOUR_S


def test_open_readings_are_bounded(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "OPEN_MAX", 2)
    stand.publish("a", 1)
    stand.report("a", (1, 1, 1), (1, 3, 3), (1, 5, 9))
    (hour,) = stand.step().hours
    assert (hour.acknowledged, hour.unwatched, hour.waiting) == (2, 5, 2)


def test_a_check_that_was_away_catches_up_in_steps(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MESSAGES_MAX", 2)
    stand.step()
    stand.publish("a", *range(7))
    stand.commit()
    stand.report("a", (1, 0, 7))
    waiting = [sums(stand.step())[4] for _ in range(4)]
    assert waiting == [6, 4, 2, 1]
    assert named(stand.step(2)) == [("a", 1, 7, 7)]


@pytest.mark.parametrize(("device", "hashed"), [("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_the_slice_of_a_device_is_its_hash_as_published(device: str, hashed: int) -> None:
    assert slice_of(device, 2**32) == hashed
    assert slice_of(device, 8) == hashed % 8
