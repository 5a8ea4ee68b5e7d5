"""No boot number is given twice."""

from pathlib import Path

import pytest

from tidegate.devices.boots import next_boot
from tidegate.devices.device import Device
from tidegate.model.errors import UserError


def test_each_start_has_a_higher_number_even_when_the_clock_goes_back(tmp_path: Path) -> None:
    numbers = [next_boot(tmp_path / "a.boot", now_s) for now_s in (1000.5, 1000.9, 5.0, 2000.0)]
    assert numbers == [1000, 1001, 1002, 2000]


def test_a_lost_counter_costs_no_identity(tmp_path: Path) -> None:
    path = tmp_path / "a.boot"
    before = next_boot(path, 1000.0)
    path.unlink()
    assert next_boot(path, 1001.0) > before


def test_a_damaged_counter_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.boot").write_text("many")
    with pytest.raises(UserError, match=r"a\.boot holds no boot number"):
        next_boot(tmp_path / "a.boot", 0.0)


def test_a_device_counts_its_starts_beside_its_acknowledgements(tmp_path: Path) -> None:
    boots = []
    for _ in range(2):
        device = Device("d", addresses=[("127.0.0.1", 1)], acknowledgements=tmp_path / "d.acks")
        boots.append(int((tmp_path / "d.boot").read_text()))
        assert device._owned_file is not None
        device._owned_file.close()
    assert boots[0] < boots[1]


@pytest.mark.parametrize(
    ("name", "sentence"), [("d", "has no boot number"), ("a/b", "cannot be a topic level"), ("", "cannot be a topic")]
)
def test_a_device_that_cannot_be_identified_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Device(name, addresses=[("127.0.0.1", 1)])
