"""The book against sets of identities: whatever comes in whatever order, nothing is called missing that is there."""

from collections import defaultdict
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.ledger import LedgerReport
from tidegate.pipeline.completeness.book import CONFIRM_S, Book
from tidegate.pipeline.completeness.marks import Settling
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.recent import Run

SLICES = 2
Identity = tuple[str, int, int]

identities = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 12))
fates = st.sampled_from(("stored", "stored", "stored", "rejected", "lost", "stored twice"))


def slice_of(device: str) -> int:
    return ord(device) % SLICES


def runs(found: set[Identity]) -> list[Run]:
    return [Run(device, boot, seq, seq) for device, boot, seq in sorted(found)]


@dataclass
class World:
    """An installation in small: a log in slices whose messages are read in order, some of which never get there."""

    logs: dict[int, list[tuple[Identity, str]]] = field(default_factory=lambda: defaultdict(list))
    positions: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(SLICES), 0))
    unreported: list[Identity] = field(default_factory=list)
    upstream: list[tuple[Identity, str]] = field(default_factory=list)
    acknowledged: set[Identity] = field(default_factory=set)
    stored: set[Identity] = field(default_factory=set)
    rejected: set[Identity] = field(default_factory=set)
    once_lost: set[Identity] = field(default_factory=set)
    reports: int = 0
    now_s: float = 1000.0

    def publish(self, identity: Identity, fate: str) -> None:
        self.upstream += [(identity, fate)] * (2 if fate == "stored twice" else fate != "lost")
        self.acknowledged.add(identity)
        self.once_lost |= {identity} if fate == "lost" else set()
        self.unreported.append(identity)

    def flow(self, count: int) -> None:
        for identity, fate in self.upstream[:count]:
            self.logs[slice_of(identity[0])].append((identity, fate))
        del self.upstream[:count]

    def commit(self, slice_: int, count: int) -> None:
        """As the sink does: an identity that the table has is not stored again."""
        at = self.positions[slice_]
        for identity, fate in self.logs[slice_][at : at + count]:
            (self.rejected if fate == "rejected" else self.stored).add(identity)
        self.positions[slice_] = min(at + count, len(self.logs[slice_]))


class Checker:
    """The steps of a round, over sets."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.book = Book(slice_of)
        self.settling = Settling()
        self.known: dict[str, set[Identity]] = {"stored": set(), "rejected": set()}

    def restart(self) -> None:
        self.book = Book(slice_of, self.book.pages())
        self.settling = Settling(self.settling.settled)

    def report(self) -> None:
        world, devices = self.world, defaultdict(list)
        for device, boot, seq in world.unreported:
            devices[device].append((boot, seq, seq))
        world.unreported.clear()
        world.reports += 1
        told = tuple((device, tuple(found)) for device, found in devices.items())
        report = LedgerReport(gateway="g", process=1, oldest_s=10, newest_s=0, devices=told)
        self.book.acknowledge(report, world.reports, world.now_s)

    def step(self) -> None:
        world = self.world
        world.now_s += CONFIRM_S
        positions = dict(world.positions)
        for outcome, now in (("stored", world.stored), ("rejected", world.rejected)):
            self.book.account(runs(now - self.known[outcome]), outcome)  # type: ignore[arg-type]
            self.known[outcome] = set(now)
        self.settling.read(positions)
        self.report()
        ends = {slice_: len(world.logs[slice_]) + len(world.upstream) for slice_ in range(SLICES)}
        self.settling.measured(world.reports, ends)
        self.settling.read(positions)
        due = self.book.due(self.settling.settled, world.now_s, 1_000)
        self.book.account(self._looked_up(due, world.stored), "stored")
        self.book.account(self._looked_up(due, world.rejected), "rejected")
        self.book.missed(due, world.now_s)

    def _looked_up(self, due: list[Open], there: set[Identity]) -> list[Run]:
        asked = {(one.device, one.boot, seq) for one in due for seq in range(one.low, one.high + 1)}
        return runs(asked & there)

    def missing(self) -> set[Identity]:
        return {(h.device, h.boot, seq) for h in self.book.holes() for seq in range(h.low, h.high + 1)}


events = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), identities, fates),
        st.tuples(st.just("flow"), st.integers(1, 5)),
        st.tuples(st.just("commit"), st.integers(0, SLICES - 1), st.integers(1, 5)),
        st.tuples(st.just("step")),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(events)
def test_what_is_missing_is_named_and_nothing_else(script: list[tuple]) -> None:  # type: ignore[type-arg]
    world = World()
    checker = Checker(world)
    for event, *arguments in script:
        if event == "step":
            checker.step()
        elif event == "restart":
            checker.restart()
        else:
            getattr(world, event)(*arguments)
        # However far the pipeline is behind: what may still come is not called missing. (What was lost and then sent
        # again is, until it is there.)
        on_its_way = {identity for identity, _ in world.upstream}
        on_its_way |= {identity for log in world.logs.values() for identity, _ in log}
        assert not (checker.missing() & on_its_way) - world.once_lost
    world.flow(1_000)
    for slice_ in range(SLICES):
        world.commit(slice_, 1_000)
    for _ in range(4):
        checker.step()
    lost = world.acknowledged - world.stored - world.rejected
    assert checker.missing() == lost
    for sums in checker.book.hours():
        assert (sums.waiting, sums.unwatched) == (0, 0)
        assert sums.missing >= 0
    named = sum(sums.missing for sums in checker.book.hours())
    assert named >= len(lost), "an identity that two reports name counts in both"


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 4)), max_size=30),
    st.lists(st.integers(0, 40), max_size=40),
)
def test_a_slice_is_settled_up_to_the_last_report_whose_place_was_reached(
    marks: list[tuple[int, int]], reached: list[int]
) -> None:
    settling, settled, given_marks = Settling(), 0, []
    steps = sorted(reached)
    for report, (place, _) in enumerate(marks, start=1):
        settling.measured(report, {0: place})
        given_marks.append((report, place))
        at = steps[min(report, len(steps)) - 1] if steps else 0
        settling.read({0: at})
        settled = max([settled, *(number for number, there in given_marks if there <= at)])
        assert settling.settled.get(0, 0) == settled
