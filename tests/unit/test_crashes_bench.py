"""The logic of ``tidegate bench crashes``: schedule, devices, oracle, and that it can find fault."""

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tidegate_bench.crashes import checks, needs, oracle, records, run
from tidegate_bench.crashes.alarms import Heard
from tidegate_bench.crashes.damage import Outcome
from tidegate_bench.crashes.oracle import COLUMNS, Named, Window
from tidegate_bench.crashes.records import Identity, Known
from tidegate_bench.crashes.schedule import BY_NAME, KINDS, Fault, fit, plan_of
from tidegate_bench.crashes.sending import AwkwardDevice, Repeater
from tidegate_bench.crashes.stored import StoredTables

SLICES = 8


# -- the schedule


def test_a_round_is_the_same_whenever_it_is_planned() -> None:
    plans = [plan_of(7, number, SLICES) for number in range(40)]
    assert plans == [plan_of(7, number, SLICES) for number in reversed(range(40))][::-1]
    assert plans != [plan_of(8, number, SLICES) for number in range(40)]


def test_every_kind_has_its_turn_before_any_has_a_second_one() -> None:
    first = [plan_of(3, number, SLICES).faults[0].kind for number in range(2 * len(KINDS))]
    assert set(Counter(first).values()) == {2}
    assert set(first[: len(KINDS)]) == set(BY_NAME)


def test_rounds_have_one_or_two_faults_that_go_together() -> None:
    plans = [plan_of(20, number, SLICES) for number in range(100)]
    assert {len(plan.faults) for plan in plans} == {1, 2}
    for plan in plans:
        kinds = [BY_NAME[fault.kind] for fault in plan.faults]
        assert all(fit(one, other) for one in kinds for other in kinds if one is not other)
        assert all(fault.victim in BY_NAME[fault.kind].victims for fault in plan.faults)
        assert 1 <= len(plan.moves) <= 2
    assert sum(fault.kind == "freeze before commit" for plan in plans for fault in plan.faults) >= 10


@pytest.mark.parametrize(
    ("one", "other", "goes"),
    [
        ("kill driver", "freeze JVM", False),
        ("kill broker", "set a store back", False),
        ("flip a bit", "remove a broker", False),
        ("kill broker", "freeze before commit", True),
        ("set all stores back", "kill control bus", True),
        ("lose the bus's store", "kill control bus", False),
    ],
)
def test_two_faults_never_take_more_than_a_minority_of_the_replicas(one: str, other: str, goes: bool) -> None:
    assert fit(BY_NAME[one], BY_NAME[other]) is fit(BY_NAME[other], BY_NAME[one]) is goes


# -- the devices


def test_no_identity_is_used_twice_though_boots_hop_and_sequences_have_gaps() -> None:
    device = AwkwardDevice("d", random.Random(1))
    readings = [device.reading(1_000.0 + number) for number in range(5_000)]
    identities = [(reading.boot, reading.seq) for reading in readings]
    assert len(set(identities)) == len(identities)
    boots = [boot for boot, _ in identities]
    assert len(set(boots)) > 20
    assert boots != sorted(boots)
    assert any(b - a > 100 for (x, a), (y, b) in itertools.pairwise(identities) if x == y)
    assert all(reading.contradiction() is None for reading in readings)
    assert any(reading.count > 1 for reading in readings)


def test_what_was_sent_is_repeated_unchanged() -> None:
    device, repeater = AwkwardDevice("d", random.Random(1)), Repeater(random.Random(2))
    sent = []
    repeated = []
    for number in range(1_000):
        sent.append(device.reading(float(number)))
        repeater.note("d", sent[-1])
        repeated += [repeater.repeat()]
    again = [one for one in repeated if one is not None]
    assert 10 < len(again) < 100
    assert all(name == "d" and reading in sent for name, reading in again)


def test_records_are_read_as_they_were_written_and_a_torn_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "devices.records"
    with records.RecordFile(path) as file:
        file.sent("d", 1, 2, '{"value":3.5}')
        file.append("d", 1, 2)
        file.append("d", 1, 2)
        file.flush()
    with path.open("a") as torn:
        torn.write("A\td\t1\t3\t17")
    known = records.read(path)
    assert known.sent == {Identity("d", 1, 2): {"value": 3.5}}
    assert list(known.acknowledged) == [Identity("d", 1, 2)]
    assert known.acknowledgements == 2


# -- the oracle

ONE, TWO = Identity("d", 0, 1), Identity("d", 9, 0)
SENT = {
    ONE: {"value": 1.5, "boot": 0, "seq": 1, "time": 10.25},
    TWO: {
        "value": 2,
        "boot": 9,
        "seq": 0,
        "time": 11.5,
        "count": 3,
        "min": 1,
        "max": 4.5,
        "first": 10.0,
        "last": 11.5,
    },
}
KNOWN = Known(SENT, {ONE: (100.0, 100.0), TWO: (200.0, 300.0)}, 3)


def row(identity: Identity, **changed: Any) -> dict[str, Any]:
    sent = SENT[identity]
    several = "count" in sent
    made = {
        "device": identity.device,
        "boot": identity.boot,
        "seq": identity.seq,
        "topic": f"telemetry/{identity.device}",
        "time": int(sent["time"] * 1e6),
        "value": float(sent["value"]),
        "count": sent.get("count", 1),
        "min": float(sent["min"]) if several else None,
        "max": float(sent["max"]) if several else None,
        "first": int(sent["first"] * 1e6) if several else None,
        "last": int(sent["last"] * 1e6) if several else None,
        "extra": None,
    }
    return {**made, **changed}


@pytest.mark.parametrize(
    ("rows", "lost", "duplicated", "wrong"),
    [
        pytest.param([row(ONE), row(TWO)], (), (), (), id="all is well"),
        pytest.param([row(TWO)], (ONE,), (), (), id="one is lost"),
        pytest.param([row(ONE), row(TWO), row(TWO)], (), (TWO,), (), id="one is stored twice"),
        pytest.param([row(ONE), row(TWO, value=2.5)], (), (), (TWO,), id="a value is another"),
        pytest.param([row(ONE, time=1), row(TWO)], (), (), (ONE,), id="a time is another"),
        pytest.param([row(ONE), row(TWO, max=None)], (), (), (TWO,), id="an extent is gone"),
        pytest.param([row(ONE), row(TWO), row(ONE, seq=77)], (), (), (Identity("d", 0, 77),), id="nobody sent it"),
    ],
)
def test_the_oracle_finds(rows: list, lost: tuple, duplicated: tuple, wrong: tuple) -> None:
    verdict = oracle.judge(KNOWN, rows)
    assert (verdict.lost, verdict.duplicated, verdict.wrong) == (lost, duplicated, wrong)
    assert verdict.acknowledged == 2


def test_every_column_that_a_device_can_set_is_compared() -> None:
    for name in COLUMNS:
        assert oracle.judge(KNOWN, [row(ONE, **{name: "another"}), row(TWO)]).wrong == (ONE,)


def part(device: str, start_s: int, count: int, sum_micro: int) -> dict[str, Any]:
    return {"device": device, "window_start": start_s * 1_000_000, "count": count, "sum_micro": sum_micro}


@pytest.mark.parametrize(
    ("partials", "wrong"),
    [
        ([part("d", 10, 4, 7_500_000)], []),
        ([part("d", 10, 1, 1_500_000), part("d", 10, 3, 6_000_000)], []),
        ([part("d", 10, 1, 1_500_000)], [("d", 10_000_000)]),
        ([part("d", 10, 4, 7_500_000), part("d", 10, 3, 6_000_000)], [("d", 10_000_000)]),
        ([part("d", 10, 4, 7_500_000), part("d", 20, 1, 0)], [("d", 20_000_000)]),
    ],
    ids=["in one", "in two parts", "one is missing", "one is counted twice", "in a window without readings"],
)
def test_means_have_to_add_up_to_the_readings(partials: list, wrong: list) -> None:
    assert oracle.wrong_means([row(ONE), row(TWO)], partials, 10_000_000) == wrong


@pytest.mark.parametrize(
    ("window", "excused"),
    [((90, 110), {ONE}), ((100, 200), {ONE, TWO}), ((201, 400), set()), ((0, 99), set())],
    ids=["one in it", "both at its edges", "acknowledged again in it", "before"],
)
def test_only_what_was_first_acknowledged_while_the_store_grew_may_be_lost(window: tuple, excused: set) -> None:
    span = Window(from_s=window[0], to_s=window[1])
    assert oracle.excusable([ONE, TWO], KNOWN, [span]) == excused


@pytest.mark.parametrize(
    ("named", "unnamed"),
    [
        (Named(), [ONE, TWO]),
        (Named(slices=frozenset({4})), []),
        (Named(slices=frozenset({5})), [ONE, TWO]),
        (Named(ranges=(("d", 0, 0, 1),)), [TWO]),
        (Named(ranges=(("d", 0, 2, 9), ("e", 9, 0, 0))), [ONE, TWO]),
        (Named(missing=2), []),
        (Named(missing=1), [ONE, TWO]),
    ],
)
def test_a_loss_is_named_by_its_slice_its_sequences_or_an_exact_sum(named: Named, unnamed: list) -> None:
    assert oracle.unnamed([ONE, TWO], 2, {"d": 4}, named) == unnamed


def test_the_oracle_reads_a_table_by_itself(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    deltalake = pytest.importorskip("deltalake")
    stamp = pa.timestamp("us", tz="UTC")
    columns = {name: pa.array([row(TWO)[name]], stamp) for name in ("time", "first", "last")}
    rest = {name: [value] for name, value in row(TWO).items() if name not in columns and name != "extra"}
    table = pa.table({**rest, **columns, "extra": pa.array([None], pa.string()), "slice": [4]})
    written = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("slice-4", 17)])
    deltalake.write_deltalake(tmp_path / "readings", table, commit_properties=written)
    stored = StoredTables(tmp_path, SLICES)
    verdict = oracle.judge(KNOWN, stored.readings())
    assert (verdict.lost, verdict.duplicated, verdict.wrong) == ((ONE,), (), ())
    assert stored.positions() == (0, 0, 0, 0, 17, 0, 0, 0)
    assert stored.rejected("d") == []


# -- alarms


@pytest.mark.parametrize(
    ("sentence", "first_s", "last_s", "names"),
    [
        ("The disk of the tables (/x) is 98% full: free space there.", 5, 8, True),
        ("The disk of /x/tables is full: free some space.", 5, 8, True),
        ("The disk of the tables (/x) is 98% full: free space there.", 66, 80, False),
        ("The disk of the tables (/x) is 98% full: free space there.", 1, 3, False),
        ("The server broker-1 has ended.", 5, 8, False),
    ],
    ids=["told", "by a node", "too late", "before it happened", "something else"],
)
def test_a_full_disk_is_named_in_time(sentence: str, first_s: float, last_s: float, names: bool) -> None:
    fault = Fault(kind="disk full", victim="tables", at_s=1.0, seconds=10.0, draw=0)
    need = needs.need_of(fault, Outcome(begun_s=4.0, ended_s=14.0, victim="tables"))
    heard = [Heard(source="up", sentence=sentence, first_s=first_s, last_s=last_s)]
    assert (need.sentence(heard) is not None) is names


# -- rows


def a_row(number: int, **changed: Any) -> dict[str, Any]:
    names = ("lost", "duplicated", "wrong_values", "wrong_means", "wedged", "silent", "refused_commits", "repeats")
    told = {"rejected": [], "unrecovered": "", "broken": None, "healed_s": 0.1}
    return {"round": number, "seed": 1, **dict.fromkeys(names, 0), **told, **changed}


@pytest.mark.parametrize("name", ["lost", "duplicated", "wrong_values", "wrong_means", "wedged", "silent"])
def test_each_count_fails_its_check(name: str) -> None:
    rows = [a_row(0, refused_commits=10, repeats=10), a_row(1)]
    assert all(check.holds for check in checks.checks_of(rows, 2))
    failing = [check.name for check in checks.checks_of([rows[0], a_row(1, **{name: 1})], 2) if not check.holds]
    assert failing == [name]


def test_rejects_missing_rounds_and_idle_fences_fail_their_checks() -> None:
    rows = [a_row(0, rejected=["too old"])]
    failing = {check.name for check in checks.checks_of(rows, 2) if not check.holds}
    assert failing == {"rounds", "rejected", "fence_needed", "dedup_needed"}


def test_a_round_that_could_not_be_played_is_no_good_one_and_ends_its_block() -> None:
    row = {"round": 1, "seed": 1, **checks.unfinished("the table cannot be read", SLICES)}
    assert checks.ends_a_block(row)
    failing = [
        check.name for check in checks.checks_of([a_row(0, refused_commits=10, repeats=10), row], 2) if not check.holds
    ]
    assert failing == ["wedged"]


def test_a_run_goes_on_behind_the_rounds_that_were_kept(tmp_path: Path) -> None:
    path = tmp_path / run.FILE
    kept = [a_row(0), a_row(1), a_row(3), a_row(2, seed=9)]
    path.write_text("".join(json.dumps(one) + "\n" for one in kept) + '{"round": 2')
    assert [one["round"] for one in run.kept_rows(path, 1)] == [0, 1]
    assert run.kept_rows(path, 2) == []
