"""The benchmark of the whole chain: its arithmetic on figures to check by hand, its load against a small peer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.bus.installation import save_installation
from tidegate.machine.ports import HOST
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate_bench.chain.alone import BROKER_ALONE, LOAD_ALONE
from tidegate_bench.chain.devices import WINDOW
from tidegate_bench.chain.run import ATTEMPT, CONFIGURATIONS, SUSTAINED, checks, sustained
from tidegate_bench.chain.search import Attempt
from tidegate_bench.chain.shares import bottleneck, shares
from tidegate_bench.chain.site import is_held
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.parts import Parts

PARTS = ("gateway", "brokers", "bus", "driver", "jvm", "workers", "planner", "controller", "load", "measuring")
QUIET = dict.fromkeys((*PARTS, "waiting_for_disk", "others"), 0.01) | {"idle": 1.0}


def attempt(rate_per_s: float = 100.0, *, held: bool = True, is_proof: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "part": ATTEMPT,
        "brokers": 1,
        "durability": "process-kill",
        "rate_per_s": rate_per_s,
        "is_proof": is_proof,
        "held": held,
        "stopped": False,
        "sent": 10,
        "acked": 10,
        "stored": 10,
        "age_s_p50": 0.5,
        "age_s_p99": 1.5,
        "ack_ms_p50": 5.0,
        "ack_ms_p99": 9.0,
        "into_log_s_p99": 0.2,
        "into_table_s_p99": 1.3,
        "shares": QUIET,
        **more,
    }


# -- from rows to checks


@pytest.mark.parametrize(
    ("differs", "held"),
    [
        ({}, True),
        ({"age_s_p99": 2.0}, True),
        ({"age_s_p99": 2.001}, False),
        ({"age_s_p99": float("inf")}, False),
        ({"acked": 9}, False),
        ({"stored": 9}, False),
        ({"stored": 11}, False),
        ({"stopped": True}, False),
        ({"sent": 0, "acked": 0, "stored": 0}, False),
    ],
)
def test_a_rate_is_held_where_everything_is_stored_and_soon_enough(differs: dict[str, Any], held: bool) -> None:
    assert is_held(attempt(**differs)) is held


@pytest.mark.parametrize(
    ("differs", "busy", "name", "reason"),
    [
        ({}, {"jvm": 0.9, "brokers": 0.3}, "jvm", "from the log into the tables (1.30 s of 1.50 s"),
        ({"into_log_s_p99": 1.4}, {"jvm": 0.9, "gateway": 0.5}, "gateway", "wait into the log"),
        ({}, {"idle": 0.1, "brokers": 0.9, "jvm": 0.6}, "brokers", "no processor is free"),
        ({}, {"idle": 0.1, "load": 0.9, "jvm": 0.9}, "load", "the load itself"),
        (
            {"into_log_s_p99": 1.4, "durability": "power-loss"},
            {"waiting_for_disk": 0.6, "brokers": 0.2},
            "disk",
            "a write is awaited",
        ),
        ({"into_log_s_p99": 1.4}, {"waiting_for_disk": 0.6, "brokers": 0.2}, "brokers", "waits more than it works"),
    ],
)
def test_the_bottleneck_is_named(differs: dict[str, Any], busy: dict[str, float], name: str, reason: str) -> None:
    found, why = bottleneck(attempt(**differs, shares={**QUIET, **busy}), processors=2)
    assert found == name
    assert reason in why


def test_shares_are_processors_between_two_looks() -> None:
    before = {"jvm": 10.0, "idle": 100.0}
    found = shares(before, {"jvm": 13.0, "idle": 101.0}, seconds=2.0)
    assert (found["jvm"], found["idle"]) == (1.5, 0.5)
    assert found["others"] >= 0.0


def test_a_configuration_shows_its_proof_and_what_was_short_beyond_it() -> None:
    rows = [
        attempt(100.0),
        attempt(200.0, held=False, shares={**QUIET, "idle": 0.0, "driver": 0.7}),
        attempt(400.0, held=False),
        attempt(90.0, is_proof=True, age_s_p99=1.1),
    ]
    made = [Attempt(rate_per_s=row["rate_per_s"], is_proof=row["is_proof"], held=row["held"]) for row in rows]
    found = sustained(CONFIGURATIONS[0], made, rows, processors=2)
    assert (found["part"], found["brokers"], found["durability"]) == (SUSTAINED, 1, "process-kill")
    assert (found["sustained_per_s"], found["age_s_p99"], found["jvm_share"]) == (90, 1.1, 0.01)
    assert (found["bottleneck"], found["bottleneck_at_per_s"]) == ("driver", 200.0)


def test_an_attempt_that_was_not_disturbed_says_more() -> None:
    rows = [
        attempt(90.0, is_proof=True),
        attempt(100.0, held=False, shares={**QUIET, "others": 1.0, "brokers": 0.9}),
        attempt(200.0, held=False, shares={**QUIET, "jvm": 0.9}),
    ]
    made = [Attempt(rate_per_s=row["rate_per_s"], is_proof=row["is_proof"], held=row["held"]) for row in rows]
    found = sustained(CONFIGURATIONS[0], made, rows, processors=2)
    assert (found["bottleneck"], found["bottleneck_at_per_s"]) == ("jvm", 200.0)


def test_where_nothing_is_held_the_lowest_attempt_says_why() -> None:
    rows = [attempt(200.0, held=False), attempt(100.0, held=False, age_s_p99=9.0)]
    made = [Attempt(rate_per_s=row["rate_per_s"], is_proof=False) for row in rows]
    found = sustained(CONFIGURATIONS[0], made, rows, processors=2)
    assert (found["sustained_per_s"], found["age_s_p99"], found["bottleneck_at_per_s"]) == (0, 9.0, 100.0)


def report(**differs: Any) -> dict[str, Any]:
    """The checks by name, of a run whose broker acknowledges 1,000 a second and whose chain sustains 100 or more."""
    alone = [{"part": part, "acked_per_s": rate} for part, rate in ((LOAD_ALONE, 4_000), (BROKER_ALONE, 1_000))]
    found = [
        {"part": SUSTAINED, "brokers": one.brokers, "durability": one.durability, "sustained_per_s": 100 + place}
        for place, one in enumerate(CONFIGURATIONS)
    ]
    found[0] |= differs
    return {check.name: (check.value, check.holds) for check in checks([*alone, *found, attempt()])}


def test_the_chain_is_compared_with_the_broker_alone() -> None:
    expected = {
        "chain_vs_broker": (0.1, True),
        "sustained": (4, True),
        "lost": (0, True),
        "load_vs_broker": (4.0, True),
    }
    assert report() == expected
    assert report(sustained_per_s=99)["chain_vs_broker"] == (0.099, False)
    assert report(sustained_per_s=0)["sustained"] == (3, False)


# -- parts that are kept


def test_a_part_is_done_once(tmp_path: Path) -> None:
    calls: list[int] = []

    def do() -> list[dict[str, Any]]:
        calls.append(1)
        return [{"n": len(calls)}]

    assert Parts(tmp_path / "parts").done("a", do) == [{"n": 1}]
    assert Parts(tmp_path / "parts").done("a", do) == [{"n": 1}]
    assert Parts(tmp_path / "parts").done("b", do) == [{"n": 2}]
    assert Parts(None).done("a", do) == [{"n": 3}]


def test_a_part_that_fails_is_done_again(tmp_path: Path) -> None:
    def fail() -> list[dict[str, Any]]:
        raise ValueError("broken off")

    parts = Parts(tmp_path)
    with pytest.raises(ValueError, match="broken off"):
        parts.done("a", fail)
    assert parts.done("a", lambda: [{"n": 1}]) == [{"n": 1}]


def test_a_file_that_is_no_part_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"a\.json is no part"):
        Parts(tmp_path).done("a", list)


# -- the load


def test_the_load_keeps_its_pace_and_counts_what_is_acknowledged(tmp_path: Path) -> None:
    here = Installation(
        control_urls=(),
        data_urls=(),
        mqtt_addresses=(),
        monitor_urls=(),
        mqtt_user="u",
        mqtt_password="p",
        slices=1,
        tables="",
    )
    save_installation(here, tmp_path)
    with Child("chain.acknowledging") as peer:
        port = peer.answer()["port"]
        with Child("chain.load", state=tmp_path, host=HOST, port=port, devices=20) as load:
            assert load.answer() == {"connected": 20, "window": WINDOW}
            load.tell(json.dumps({"rate": 2_000, "seconds": 0.5}))
            paced = load.answer()
            assert (paced["sent"], paced["acked"], paced["stopped"]) == (1_000, 1_000, False)
            assert 0.4 < paced["sending_s"] < 5.0
            load.tell(json.dumps({"rate": 0, "seconds": 0.2}))
            flat_out = load.answer()
            assert flat_out["sent"] == flat_out["acked"] > 0
            load.tell(json.dumps({"rate": 100, "seconds": 60}))
            load.tell("stop")
            stopped = load.answer(20)
            assert stopped["stopped"]
            assert stopped["sent"] == stopped["acked"] < 6_000
