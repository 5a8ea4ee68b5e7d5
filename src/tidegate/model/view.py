"""What people are shown: the same values and the same sentence in the dashboard, the terminal and the API."""

import msgspec

from tidegate.model.decisions import Decision, Mode
from tidegate.model.ledger import CompletenessState
from tidegate.model.notices import Notice
from tidegate.model.observations import BrokerState, GatewayState, NodeState, SliceState
from tidegate.model.tables import TablesState

DECISIONS_SHOWN = 50  # of a view, the newest
NOTICES_SHOWN = 50
AGE_S_CAUTION = 2.0
AGE_S_DANGER = 5.0
# Data that gets older by more than this share of the time that passes is called ageing.
AGEING_SHARE = 0.2


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One point of every chart."""

    at_s: float
    age_s: float  # of the oldest message the tables lack
    arrival_per_s: float
    departure_per_s: float
    waiting: int
    devices: int
    interval_s: float  # advised; 0 where devices keep their default
    capacity_per_s: float | None  # as far as it is known
    phase: str
    demand_per_s: float | None = None  # what devices would send if nobody held them, where it is known
    nodes_working: int = 0  # processing nodes that work
    nodes_wanted: int | None = None  # None where nobody scales
    classes: dict[str, float] = {}  # advised interval by class, where classes are treated differently


class ChainStates(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts between devices and tables last reported."""

    gateways: tuple[GatewayState, ...] = ()
    brokers: tuple[BrokerState, ...] = ()
    nodes: tuple[NodeState, ...] = ()
    slices: tuple[SliceState, ...] = ()
    tables: TablesState | None = None  # None where no maintainer has ever said how they are


class RuleState(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, and what came of it last. ``plan`` is empty while it waits for its event."""

    name: str
    on: str
    active: bool  # its event is under way
    plan: str = ""  # the state of its plan: "doing", "in force", "undoing", "stuck"
    step: int = 0
    steps: int = 0
    trouble: str = ""


class RulesState(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator wants done when something happens. ``notices`` are the newest ones, oldest first."""

    name: str = ""  # of the file that was applied last; empty where none was
    applied_at_s: float = 0.0
    rules: tuple[RuleState, ...] = ()
    events: dict[str, bool] = {}  # whether each is under way
    notices: tuple[Notice, ...] = ()


class IdentityState(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of devices as a whole. Keys are named by their ids, and nothing here is a secret."""

    registered: int | None = None  # None while it is not known
    revoked: int | None = None  # names that are refused altogether
    access_name: str = ""  # of the file that was applied last; empty where the settings count
    access_applied_at_s: float = 0.0  # Unix time
    key_id: str | None = None  # of the key that new passwords are made with
    previous_key_id: str | None = None  # whose passwords count until its rotation is finished


class View(msgspec.Struct, frozen=True, kw_only=True):
    """All of the first screen. ``samples`` and ``decisions`` are oldest first."""

    name: str
    controller: str
    leader: str | None
    mode: Mode
    samples: tuple[Sample, ...]
    decisions: tuple[Decision, ...]
    chain: ChainStates
    alarms: tuple[str, ...] = ()
    completeness: CompletenessState | None = None
    rules: RulesState = RulesState()
    identity: IdentityState = IdentityState()
    withheld: tuple[str, ...] = ()  # what is wanted now and not done, and what stands between

    @property
    def now(self) -> Sample | None:
        return self.samples[-1] if self.samples else None


class StateSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence and how worried it is: good, caution or danger."""

    sentence: str
    severity: str


def seconds(value: float) -> str:
    """Two significant digits with the unit, and no more than hundredths."""
    if value < 0.1:
        return f"{value:.2f} s"
    return f"{value:.2g} s" if value < 9.95 else f"{value:,.0f} s"


def duration(value_s: float) -> str:
    """How long ago, or how long until, in the largest unit that has two of it: nobody counts 4,000 seconds."""
    for unit_s, word in ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min")):
        if value_s >= 2 * unit_s:
            return f"{value_s / unit_s:,.0f} {word}"
    return f"{value_s:.0f} s"


def state_of(samples: tuple[Sample, ...], mode: Mode) -> StateSummary:
    """Say like this: Data is 24 s old and ageing: 1,900 msg/s arrive, Spark takes 1,100. Nobody is slowed."""
    if not samples:
        return StateSummary(sentence="Nothing is known yet: the first measurement is on its way.", severity="caution")
    now = samples[-1]
    ageing = is_ageing(samples)
    old = f"Data is {seconds(now.age_s)} old"
    if ageing:
        old += f" and ageing: {now.arrival_per_s:,.0f} msg/s arrive, Spark takes {now.departure_per_s:,.0f}"
    severity = "good" if now.age_s < AGE_S_CAUTION else "caution" if now.age_s < AGE_S_DANGER else "danger"
    return StateSummary(sentence=f"{old}. {_held(now, mode)}", severity=severity)


def _held(now: Sample, mode: Mode) -> str:
    differ = any(one != now.interval_s for one in now.classes.values())
    if differ and (now.interval_s > 0 or any(now.classes.values())):
        return "Devices are asked to send less often, by class."
    if now.interval_s > 0:
        return f"{now.devices:,} devices are asked to send every {seconds(now.interval_s)}."
    if mode.frozen:
        return "Nobody is slowed (all acting is frozen)."
    if mode.send_rate == "acting":
        return "Nobody is slowed."
    return "Nobody is slowed (protection is off)." if mode.send_rate == "off" else "Nobody is slowed (shadow mode)."


def is_ageing(samples: tuple[Sample, ...], span_s: float = 4.0) -> bool:
    """Whether the data got older over the last seconds, and is old enough for that to matter."""
    now = samples[-1]
    before = next((sample for sample in samples if sample.at_s >= now.at_s - span_s), now)
    passed = now.at_s - before.at_s
    return now.age_s >= AGE_S_CAUTION and passed > 0 and now.age_s - before.age_s > AGEING_SHARE * passed
