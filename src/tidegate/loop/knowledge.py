"""Knowledge: all that is known at one moment, as one frozen value. Policies and events look at nothing else.

Properties stand under their source: ``chain``, ``class/alarm``, ``broker/broker-1``, ``gateway/gateway-1``,
``node/node-1``, ``slice/5``. A property that nobody could measure is not there: what is not known is no zero.
"""

import msgspec

from tidegate.model.advice import HALVINGS
from tidegate.model.intents import Pace, Value
from tidegate.model.observations import BrokerState, NodeState
from tidegate.model.routes import Routes

CHAIN = "chain"
NEVER_S = -1e12  # before all time
IDLE_S_MAX, IDLE_ROUNDS = 5.0, 3.0  # no shorter than some usual rounds: they may be a minute apart
Properties = dict[str, float]


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What was said last of one family, by member: whether anybody was told, when, and how long it holds."""

    values: dict[str, Value] = {}
    acted: bool = False
    decided_at_s: float = 0.0
    told_at_s: float = 0.0
    reached_at_s: float = NEVER_S  # when somebody was told before that
    failed: bool = False  # the last word reached nobody
    lifetime_s: float = 0.0  # 0: until something else is said
    until_s: float = NEVER_S  # when the last lease ends of all that were ever told
    share: float = 1.0  # of those that it could be said to
    half_life_s: float = 0.0  # in which it shrinks to half when that is over; 0: at once
    fading: dict[str, float] = {}  # who is on his way out beside others that are held: when that is halved next
    behind: "Standing | None" = None  # what somebody was told before this, where this is only a shadow

    @property
    def told(self) -> "Standing":
        """What somebody was really told."""
        return self if self.acted else self.behind or Standing()

    def kept_to(self, at_s: float) -> dict[str, Value]:
        """What holds at that moment because of it: all, what is left of it, or nothing. A shadow leaves what was told
        before it to lapse."""
        if not self.acted and self.behind is not None:
            return self.behind.kept_to(at_s)
        if not self.acted or self.told_at_s <= NEVER_S:
            return {}
        over_s = at_s - self.told_at_s - self.lifetime_s
        if not self.lifetime_s or over_s < 0:
            return self.values
        steps = int(over_s // self.half_life_s) + 1 if self.half_life_s else HALVINGS + 1
        if steps > HALVINGS:
            return {}
        return {name: one.shrunk(0.5**steps) for name, one in self.values.items() if isinstance(one, Pace)}

    def is_renewed(self, at_s: float) -> bool:
        """Whether all of it is in force: it has not lapsed."""
        return at_s < self.told_at_s + self.lifetime_s

    def is_over(self, at_s: float) -> bool:
        """Whether it was in force, and has lapsed for good since."""
        told = self.acted and self.told_at_s > NEVER_S
        return told and bool(self.values) and self.lifetime_s > 0 and not self.kept_to(at_s)

    def untold(self, *, lapses: bool) -> "Standing":
        """Nobody could be told: it is decided, and is told as soon as that is possible. What was told before is about
        the same where it lapses, and is in force until it has; of anything else nothing is."""
        return msgspec.structs.replace(self, told_at_s=self.reached_at_s if lapses else NEVER_S, failed=True)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy made of a round, for people and for the policies that are asked after it."""

    phase: str = "idle"
    found: dict[str, float] = {}  # what it worked out, by name
    rule: str = ""
    rejected: str = ""


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """``at_s`` is now, ``measured_at_s`` the moment that properties describe: monitoring takes its time."""

    at_s: float
    measured_at_s: float
    complete: bool  # a whole window has been seen: before that no rate is known
    properties: dict[str, Properties]
    round_s: float = 0.0  # how far apart observations are, whether anything is decided or not; 0 where nobody knows
    in_force: dict[str, Standing] = {}
    events: tuple[str, ...] = ()  # those that are under way
    findings: dict[str, Finding] = {}  # of this round, by policy
    nodes: tuple[NodeState, ...] = ()
    brokers: tuple[BrokerState, ...] = ()
    routes: Routes | None = None  # that gateways follow; None where that could not be read

    @property
    def chain(self) -> Properties:
        return self.properties.get(CHAIN, {})

    def idle_s(self, last_s: float) -> float:
        """For how long nothing was decided, frozen or without a leader, where the last round was then; 0 where that is
        no longer ago than rounds are apart."""
        passed_s = self.at_s - last_s if last_s else 0.0
        return passed_s if passed_s > max(IDLE_S_MAX, IDLE_ROUNDS * self.round_s) else 0.0

    def group(self, kind: str) -> dict[str, Properties]:
        """All sources of a kind, by their names without it."""
        return {
            source.partition("/")[2]: found
            for source, found in self.properties.items()
            if source.startswith(f"{kind}/")
        }

    def kept_to(self, family: str) -> dict[str, Value]:
        """What of a family holds now because it was said."""
        return self.in_force.get(family, Standing()).kept_to(self.at_s)
