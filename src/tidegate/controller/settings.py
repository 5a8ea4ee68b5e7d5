"""What an operator may choose about the controller."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from tidegate.loop.events import OVERLOAD, Event, overload
from tidegate.loop.machine import ControlLoop
from tidegate.loop.policies import registry
from tidegate.loop.policies.nodes import NodeCount
from tidegate.loop.policies.routes import FollowHealth
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.policies.slices import SpreadSlices
from tidegate.loop.policy import Policy
from tidegate.loop.promises import Promises
from tidegate.loop.rules import RuleSet, StepRule
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.intents import EVERYBODY, Algorithm

# What fits micro-batches, where a policy's own defaults do not; an operator's options go over these.
# gotin: the publication's 0.98 needs four minutes for a backlog of five seconds; 0.85 needs half a minute.
# adaptive: a batch that is being processed waits too, and so does the one that gathers meanwhile; a short batch proves
# nothing, so more has to be found out by trying; and a node that has just come is cold.
MICRO_BATCHES: dict[str, dict[str, Any]] = {
    "gotin": {"k_protect": 0.85, "k_recover": 1.2, "iteration_s": 0.5},
    "adaptive": {"standing_s": 1.2, "horizon_s": 3.0, "probe_per_s": 0.03, "ramp_s": 6.0},
}
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


ORACLE = "oracle"
NODES_MAX = 64
_NODE_BOUNDS = ("nodes_min", "nodes_max")


class ControllerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One controller. Controllers of one installation should have the same settings, but for their names.

    ``overload`` is an expression over the loop's properties; the overload begins when it has been true for
    ``overload_for_s``. ``default_interval_s`` is how often a device sends that nobody advises.
    """

    name: Name = "controller-1"
    policy: Literal["adaptive", "coupled", "credits", "gotin", "gradient2", "none", "spark-pid"] = "gotin"
    options: dict[str, Any] = {}  # the policy's own, by name
    nodes_max: Annotated[int, msgspec.Meta(ge=1, le=NODES_MAX)] = 1  # so many processing nodes may be asked for
    period_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 0.5
    window_s: Annotated[float, msgspec.Meta(ge=0.5, le=600)] = 3.0
    # A leader that has not renewed its lease for this long is taken for dead.
    lease_s: Annotated[float, msgspec.Meta(ge=1, le=60)] = 3.0
    advice_lifetime_s: Annotated[float, msgspec.Meta(ge=1, le=INTERVAL_S_MAX)] = 10.0
    # Advice that nobody renews shrinks to half in this time, again and again; 0 ends it at once.
    advice_half_life_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 10.0
    # Old, more of it than 1.2 s of work, and nodes at their limit: each alone is also true of a calm chain between two
    # batches, or of one whose machine is busy with something else.
    overload: str = "nodes_at_limit >= 1 and head_age_s > 0.8 and waiting > 1.2 * departure_per_s"
    # While devices are held, nodes are not at their limit; it is over when what has waited is worked off.
    overload_until: str | None = "head_age_s <= 0.8 or waiting <= 1.2 * departure_per_s"
    # At once: a node that is full needs no second look, and every half second is more than half a second's work.
    overload_for_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 0.0
    default_interval_s: Annotated[float, msgspec.Meta(ge=0.001, le=INTERVAL_S_MAX)] = 0.5

    def __post_init__(self) -> None:
        """Ranges again, because a value built in code passes no decoder; and the expression, which no decoder reads."""
        for field in msgspec.structs.fields(self):
            try:
                msgspec.convert(getattr(self, field.name), field.type)
            except msgspec.ValidationError as error:
                raise UserError(f"The controller's setting {field.name} is out of range: {error}.") from None
        self.overload_event()
        self._algorithm((), Algorithm())
        if self.window_s < 2 * self.period_s:
            raise UserError(
                f"The controller's setting window_s is {self.window_s:g}, less than two periods ({self.period_s:g} s): "
                "a rate needs two measurements; lengthen it."
            )
        if self.advice_lifetime_s < 2 * self.lease_s:
            raise UserError(
                f"The controller's setting advice_lifetime_s is {self.advice_lifetime_s:g}, less than two leases "
                f"({self.lease_s:g} s): advice would run out before the next leader renews it; lengthen it."
            )

    def overload_event(self) -> Event:
        return overload(self.overload, self.overload_for_s, "The controller's setting overload", self.overload_until)

    def control_loop(self, classes: Sequence[DeviceClass] = (), rules: RuleSet | None = None) -> ControlLoop:
        def send_rate(_: str, algorithm: Algorithm) -> Policy[Any]:
            return SendRate(self._algorithm(classes, algorithm), self.advice_lifetime_s)

        return ControlLoop(
            (FollowHealth(), SpreadSlices(), send_rate("", Algorithm()), NodeCount()),
            {OVERLOAD: self.overload_event()},
            window_s=self.window_s,
            rules=rules,
            promises=Promises(classes, 1.0 / self.default_interval_s, self.advice_half_life_s),
            choose=send_rate,
        )

    def check(self, rules: RuleSet, classes: Sequence[DeviceClass] = ()) -> None:
        """Refuse rules whose algorithms or options there are not, by their place."""
        for number, rule in enumerate(rules.rules):
            for place, step in enumerate(rule.plan):
                here = f"rules[{number}].plan[{place}]"
                try:
                    if step.algorithm is not None:
                        self._algorithm(classes, step.algorithm)
                except UserError as error:
                    raise UserError(f"{here}: {error}", where=here) from None
                if _nodes_wanted(step) > NODES_MAX:
                    many = f"{here}.options wants {_nodes_wanted(step)} nodes: at most {NODES_MAX} may be asked for."
                    raise UserError(many, where=f"{here}.options")
                _check_classes(step, classes, f"{here}.send_every_s")

    def check_nodes(self, rules: RuleSet) -> None:
        """Refuse rules that want more nodes than may be asked for; who only has the file does not know how many."""
        for rule in rules.rules:
            for step in rule.plan:
                wanted = _nodes_wanted(step)
                if wanted > self.nodes_max:
                    raise UserError(
                        f"Rule {rule.name} wants {wanted} nodes, and nodes_max is {self.nodes_max}: start with "
                        f"'tidegate up --nodes-max {wanted}', or want fewer."
                    )

    def _algorithm(self, classes: Sequence[DeviceClass], chosen: Algorithm) -> registry.Built:
        """The chosen algorithm with what fits micro-batches; options of the configured one where it is that."""
        name = chosen.name or self.policy
        if ORACLE in (name, chosen.options.get("policy")):
            raise UserError(f"The policy {ORACLE} knows the truth, which there is in simulations only: choose another.")
        own = self.options if name == self.policy else {}
        options = {**MICRO_BATCHES.get(name, {}), **own, **chosen.options}
        if name == registry.COUPLED:
            inner = options.get("policy_options", {})
            fitting = MICRO_BATCHES.get(str(options.get("policy", "gotin")), {})
            options["policy_options"] = {**fitting, **inner} if isinstance(inner, dict) else inner
            options["autoscaler_options"] = self._bounded(options.get("autoscaler_options", {}))
        if name == "adaptive":
            options["provisioning"] = self._bounded(options.get("provisioning", {}))
        return registry.build(name, options, default_rate_per_s=1.0 / self.default_interval_s, classes=classes)

    def _bounded(self, given: Any) -> Any:
        """Options of whoever asks for nodes: as many as the controller may ask for, or fewer. Anything but a table is
        left for who reads it to refuse."""
        if not isinstance(given, dict):
            return given
        asked = {"nodes_max": self.nodes_max, **given}
        return {
            name: min(value, self.nodes_max) if name in _NODE_BOUNDS and isinstance(value, int) else value
            for name, value in asked.items()
        }


def _nodes_wanted(step: StepRule) -> int:
    """The most nodes that a step asks for, or lets an algorithm ask for."""
    tables = (step.options, step.options.get("policy_options"))
    keys = ("provisioning", "autoscaler_options")
    given = [table.get(key) for table in tables if isinstance(table, dict) for key in keys]
    bounds = [one.get(name) for one in given if isinstance(one, dict) for name in _NODE_BOUNDS]
    return max([step.nodes or 0, *(bound for bound in bounds if isinstance(bound, int))])


def _check_classes(step: StepRule, classes: Sequence[DeviceClass], here: str) -> None:
    """Refuse what would do nothing: a class that there is not, or one that is never delayed."""
    known = {one.name: one for one in classes}
    for name in step.send_every_s:
        place = f"{here}.{name}"
        if name != EVERYBODY and known and name not in known:
            listed = ", ".join((*known, f"{EVERYBODY!r} for everybody"))
            raise UserError(f"{place}: there is no class {name!r}: choose one of {listed}.", where=place)
        if name in known and known[name].never_delay:
            raise UserError(f"{place}: devices of class {name} are never delayed: leave it out.", where=place)
