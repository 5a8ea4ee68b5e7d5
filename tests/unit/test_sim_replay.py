"""Recorded messages: as they came, or held back and combined by the devices that sent them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tidegate.model.errors import UserError
from tidegate.sim.recording import load
from tidegate.sim.run import simulate
from tidegate.sim.scenario import Load, Replay, Scenario, Service, Strategy

CLASSES = (
    Load(name="telemetry", default_interval_s=0.5),
    Load(name="alarm", default_interval_s=5.0, never_delay=True, cost=2.0),
)
FLOOD = "at_s,device\n" + "".join(f"{tick / 10:.1f},pump-{tick % 4}\n" for tick in range(300))


def file(directory: Path, text: str, name: str = "recorded.csv") -> str:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def scenario(replay: Replay, rate_per_s: float = 100.0, seconds: float = 30.0) -> Scenario:
    return Scenario(
        name="replayed", seconds=seconds, classes=CLASSES, service=Service(rate_per_s=rate_per_s), replay=replay
    )


def test_messages_without_devices_arrive_when_they_did(tmp_path: Path) -> None:
    replay = Replay(file=file(tmp_path, "at_s,class\n2.5,alarm\n0.5,telemetry\n0.6,telemetry\n"))
    result = simulate(scenario(replay, seconds=4), Strategy(policy="none"), 1)
    assert result.series.arrivals == [2, 0, 1, 0]
    assert result.series.demand_per_s == [2.0, 0.0, 1.0, 0.0]
    assert (result.generated, result.sent, result.processed, result.devices_max) == (3, 3, 3, 0)
    assert {name: one.sent for name, one in result.classes.items()} == {"telemetry": 2, "alarm": 1}
    assert result.classes["alarm"].age_mean_s == pytest.approx(2.0 / 100)


def test_unadvised_devices_send_what_was_recorded(tmp_path: Path) -> None:
    replay = Replay(file=file(tmp_path, FLOOD))
    result = simulate(scenario(replay), Strategy(policy="none"), 1)
    assert set(result.series.arrivals) == {10}
    assert (result.generated, result.sent, result.readings, result.devices_max) == (300, 300, 300, 4)


@pytest.mark.parametrize(("controllable", "is_held"), [(True, True), (False, False)])
def test_devices_are_held_where_they_may_be(tmp_path: Path, controllable: bool, is_held: bool) -> None:
    """Ten messages a second for a node that takes five."""
    replay = Replay(file=file(tmp_path, FLOOD), controllable=controllable)
    result = simulate(scenario(replay, rate_per_s=5.0), Strategy(policy="gotin"), 1)
    assert (result.sent < 200) == is_held
    assert (result.delay_max_s < 5) == is_held
    assert (result.readings > 1.5 * result.processed) == is_held  # what it may not send one by one is combined


def test_a_recorded_device_is_connected_from_its_first_message_to_its_last(tmp_path: Path) -> None:
    replay = Replay(file=file(tmp_path, "at_s,device\n1.5,a\n3.5,a\n2.5,b\n"))
    result = simulate(scenario(replay, seconds=5), Strategy(policy="none"), 1)
    assert result.series.devices == [0, 1, 1, 0, 0]


def test_parquet_and_other_column_names(tmp_path: Path) -> None:
    path = tmp_path / "recorded.parquet"
    pa.parquet.write_table(pa.table({"when": [0.5, 1.5], "kind": ["alarm", "telemetry"], "who": [7, 8]}), path)
    replay = Replay(file=str(path), seconds_column="when", class_column="kind", device_column="who")
    recorded = load(replay, ["telemetry", "alarm"])
    assert recorded.devices == (("alarm", "7", (0.5,)), ("telemetry", "8", (1.5,)))
    assert recorded.free == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("seconds\n1\n", "has no column at_s: it has seconds; name the column of seconds under replay.seconds_column."),
        ("at_s\n", "is empty: record at least one message."),
        ("", "is no table"),
        ("at_s\n1\nx\n", "has 'x' as at_s in row 2: expected seconds from 0 on."),
        ("at_s\n1\n-2\n", "has -2 as at_s in row 2: expected seconds from 0 on."),
        ("at_s\n1\nnan\n", "has None as at_s in row 2: expected seconds from 0 on."),
        (
            "at_s,class\n1,pump\n",
            "has the class 'pump' in row 1, which the scenario does not: it has telemetry, alarm.",
        ),
    ],
)
def test_a_bad_recording_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        load(Replay(file=file(tmp_path, text)), ["telemetry", "alarm"])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_recording_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"recording .*none\.csv does not exist"):
        load(Replay(file=str(tmp_path / "none.csv")), ["telemetry"])
    with pytest.raises(UserError, match=r"cannot be read|is no table"):
        load(Replay(file=str(tmp_path)), ["telemetry"])
    with pytest.raises(UserError, match="is no table"):
        load(Replay(file=file(tmp_path, "not parquet", "recorded.parquet")), ["telemetry"])
