"""Which devices of a fleet are of which class: shares hold for every number of devices, and the seed decides."""

import asyncio
import itertools
from collections import Counter
from pathlib import Path

import pytest
from nowhere import NOWHERE

from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.fleet_member import make_member
from tidegate.devices.fleet_plan import FleetPlan
from tidegate.devices.mix import Mix, parse_classes
from tidegate.devices.pattern import Pattern
from tidegate.devices.simulated_values import value_of
from tidegate.model.errors import UserError

CLASSES = parse_classes("telemetry:0.8, alarm:0.1,command : 0.1")


def test_parsing() -> None:
    assert CLASSES == (("telemetry", 0.8), ("alarm", 0.1), ("command", 0.1))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is no name of a class"),
        ("alarm", "have the part 'alarm'"),
        ("alarm:many", "have the part 'alarm:many'"),
        ("alarm:0", "a share is above 0"),
        ("alarm:nan", "a share is above 0"),
        ("Alarm:0.1", "is no name of a class"),
        ("a:0.5,a:0.5", "name a class twice"),
        ("a:0.5,b:0.6", r"add up to 1\.1"),
    ],
)
def test_what_is_no_split_is_said_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_classes(text)


@pytest.mark.parametrize("seed", [0, 1, 2**40, -3])
@pytest.mark.parametrize("devices", [10, 97, 1_000])
def test_every_number_of_devices_has_its_shares(seed: int, devices: int) -> None:
    mix = Mix(classes=CLASSES, event_driven=0.25, seed=seed)
    kinds = Counter((mix.device_class(index), mix.is_event_driven(index)) for index in range(devices))
    for name, share in CLASSES:
        on_change, by_interval = kinds[name, True], kinds[name, False]
        assert on_change + by_interval == pytest.approx(share * devices, abs=4)
        assert on_change == pytest.approx(share * devices / 4, abs=4)
    assert sum(kinds.values()) == devices


def test_who_falls_to_no_class_has_none() -> None:
    mix = Mix(classes=(("alarm", 0.2),))
    assert Counter(mix.device_class(index) for index in range(100)) == {None: 79, "alarm": 21}
    assert {Mix().device_class(index) for index in range(100)} == {None}
    assert not any(Mix().is_event_driven(index) for index in range(100))
    assert all(Mix(event_driven=1.0).is_event_driven(index) for index in range(100))


def test_the_seed_decides_who() -> None:
    chosen = [[Mix(classes=CLASSES, seed=seed).device_class(index) for index in range(50)] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] != chosen[2]


def members(tmp_path: Path, mix: Mix) -> list[tuple[str | None, bool, list[float]]]:
    """Class, whether it sends on change, and the first values of some devices."""

    async def make() -> list[tuple[str | None, bool, list[float]]]:
        with AckFile(tmp_path / "a.acks") as file:
            plan = FleetPlan(pattern=Pattern.constant(8, 1), boot=0, seed=mix.seed, mix=mix)
            made = [make_member(index, plan, NOWHERE, file, lambda name: (name, "word")) for index in range(8)]
        return [
            (
                member.device._publisher._device_class,
                member.device._dead_band is not None,
                list(itertools.islice(member.values, 5)),
            )
            for member in made
        ]

    return asyncio.run(make())


def test_devices_are_made_as_the_mix_says(tmp_path: Path) -> None:
    mix = Mix(classes=(("alarm", 0.5),), event_driven=0.5, seed=7)
    made = members(tmp_path, mix)
    assert [(name, on_change) for name, on_change, _ in made] == [
        (mix.device_class(index), mix.is_event_driven(index)) for index in range(8)
    ]
    assert len({(name, on_change) for name, on_change, _ in made}) > 2
    for index, (_, on_change, values) in enumerate(made):
        plain = [value_of(7, index, seq) for seq in range(5)]
        assert (values == plain) != on_change
        if on_change:
            assert all(abs(later - earlier) < 0.11 for earlier, later in itertools.pairwise(values))


def test_without_a_mix_every_device_is_as_it_was(tmp_path: Path) -> None:
    made = members(tmp_path, Mix(seed=7))
    assert made == [(None, False, [value_of(7, index, seq) for seq in range(5)]) for index in range(8)]
