"""A damaged document is named, and hides or stops nothing besides."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bus import ControlBus
from support.rigs import NODES

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import COMPLETENESS, GAPS, MAINTAINER, NODE_LEASES, TABLES
from tidegate.bus.installation import save_installation
from tidegate.bus.leases import Lease
from tidegate.cli.main import run
from tidegate.model.errors import UserError
from tidegate.model.gaps import Gap, Gaps
from tidegate.model.installation import Installation
from tidegate.pipeline.naming import await_name
from tidegate.pipeline.settings import NodeSettings
from tidegate.pipeline.tables.tables import Tables

pytestmark = pytest.mark.live
GARBAGE = b"\xff\x00garbage"
GAP = Gap(slice=1, kind="shorter", noticed_at_s=1.0, node="n", incarnation=1, expected_sequence=9)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Installation]]:
    state = tmp_path_factory.mktemp("state")
    with EmbeddedBrokers(state, BrokerSettings(slices=2)) as brokers:
        assert brokers.installation is not None
        save_installation(brokers.installation, state)
        Tables(Path(brokers.installation.tables)).claim({0: 1, 1: 1})
        yield state, brokers.installation


@pytest.fixture
def state(site: tuple[Path, Installation]) -> Path:
    return site[0]


@pytest.fixture
def bus(site: tuple[Path, Installation]) -> Iterator[ControlBus]:
    with ControlBus(site[1]) as connected:
        yield connected
        for document in (GAPS, COMPLETENESS, TABLES, MAINTAINER):
            connected.delete(document)
        for name in connected.names(NODE_LEASES):
            connected.delete(NODE_LEASES, name)


def said(capsys: pytest.CaptureFixture[str], state: Path, *arguments: str) -> tuple[int, str, str]:
    status = run([*arguments, "--state", str(state)])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_gap_is_shown_and_closed_though_the_ledger_cannot_be_read(
    bus: ControlBus, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bus.put(GAPS, Gaps((GAP,)))
    bus.put_raw(COMPLETENESS.key, GARBAGE)
    status, out, err = said(capsys, state, "recover")
    assert (status, "Slice 1: the log was set back" in out, "'completeness' on the control bus" in err) == (
        1,
        True,
        True,
    )
    assert "The ledger knows of no reading" not in out
    assert said(capsys, state, "recover", "--close", "1")[0] == 0


@pytest.mark.parametrize("option", [("--close", "1"), ("--close-all",)])
def test_a_damaged_document_of_gaps_is_shown_and_written_anew(
    bus: ControlBus, state: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    bus.put_raw(GAPS.key, GARBAGE)
    status, out, _ = said(capsys, state, "recover")
    assert (status, "'gaps' on the control bus is damaged" in out) == (1, True)
    status, out, err = said(capsys, state, "recover", *option)
    assert (status, "written anew" in err, "garbage" in err, "No gap is open" in out) == (0, True, True, True)
    assert bus.get(GAPS) == Gaps()


def test_tables_are_shown_though_their_maintainer_cannot_be_read(
    bus: ControlBus, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bus.put_raw(TABLES.key, GARBAGE)
    bus.put_raw(MAINTAINER.key, GARBAGE)
    status, out, err = said(capsys, state, "table", "status", "--json")
    assert [row["table"] for row in json.loads(out)["rows"]] == ["readings", "means", "rejected"]
    assert (status, "'tables' on the control bus" in err, "'maintainer' on the control bus" in err) == (0, True, True)


def test_a_lease_that_cannot_be_read_is_no_node_and_gets_no_slices(
    bus: ControlBus, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = Lease(bus, NODE_LEASES, NODES[0], 60)
    assert lease.keep()
    bus.put_raw(NODE_LEASES.key_of("ghost"), GARBAGE)
    status, out, err = said(capsys, state, "status")
    assert (status, "1 processing node(s) run" in out, "'lease.ghost' on the control bus" in err) == (0, True, True)
    assert {change.taker for change in bus.assignments.adopt_orphans()} == {NODES[0]}
    lease.end()


def test_a_running_node_writes_its_damaged_lease_anew(bus: ControlBus) -> None:
    lease = Lease(bus, NODE_LEASES, "worn", 60)
    assert lease.keep()
    bus.put_raw(NODE_LEASES.key_of("worn"), GARBAGE)
    assert lease.keep()
    assert "worn" in bus.assignments.alive()
    lease.end()


def test_a_node_starts_in_spite_of_a_damaged_lease_and_says_so(
    bus: ControlBus, site: tuple[Path, Installation]
) -> None:
    told: list[str] = []
    settings = NodeSettings(name="next", lease_s=1.0)
    bus.put_raw(NODE_LEASES.key_of("next"), GARBAGE)
    await_name(site[1], settings, told.append)
    assert ["'lease.next' on the control bus is damaged" in sentence for sentence in told] == [True]
    lease = Lease(bus, NODE_LEASES, "next", 60)
    assert lease.keep()
    with pytest.raises(UserError, match="A node named next is running already"):
        await_name(site[1], settings, told.append)
