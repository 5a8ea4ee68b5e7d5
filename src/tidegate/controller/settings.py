"""What an operator may choose about the controller."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from tidegate.loop import policies
from tidegate.loop.events import Event
from tidegate.loop.expressions import Expression
from tidegate.loop.machine import ControlLoop
from tidegate.loop.monitors import PROPERTIES
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError

# What fits micro-batches, where a policy's own defaults do not; an operator's options go over these.
# gotin: the publication's 0.98 needs four minutes for a backlog of five seconds; 0.85 needs half a minute.
# adaptive: a batch that is being processed waits too, and so does the one that gathers meanwhile; a short batch proves
# nothing, so more has to be found out by trying; and a node that has just come is cold.
MICRO_BATCHES: dict[str, dict[str, Any]] = {
    "gotin": {"k_protect": 0.85, "k_recover": 1.2, "iteration_s": 0.5},
    "adaptive": {"standing_s": 0.6, "horizon_s": 3.0, "probe_per_s": 0.03, "ramp_s": 6.0},
}
Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class ControllerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One controller. Controllers of one installation should have the same settings, but for their names.

    ``overload`` is an expression over the loop's properties; the overload begins when it has been true for
    ``overload_for_s``. ``default_interval_s`` is how often a device sends that nobody advises.
    """

    name: Name = "controller-1"
    policy: Literal["adaptive", "coupled", "credits", "gotin", "gradient2", "none", "spark-pid"] = "gotin"
    options: dict[str, Any] = {}  # the policy's own, by name
    nodes_max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1  # so many processing nodes may be asked for
    period_s: Annotated[float, msgspec.Meta(ge=0.1, le=60)] = 0.5
    window_s: Annotated[float, msgspec.Meta(ge=0.5, le=600)] = 3.0
    # A leader that has not renewed its lease for this long is taken for dead.
    lease_s: Annotated[float, msgspec.Meta(ge=1, le=60)] = 3.0
    advice_lifetime_s: Annotated[float, msgspec.Meta(ge=1, le=INTERVAL_S_MAX)] = 10.0
    # Old, and more of it than 1.2 s of work: either alone is also true of a calm chain between two batches.
    overload: str = "head_age_s > 0.8 and waiting > 1.2 * departure_per_s"
    # One batch more: the first of a flood are still small, and what leaves with them says little about the limit.
    overload_for_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 0.4
    default_interval_s: Annotated[float, msgspec.Meta(ge=0.001, le=INTERVAL_S_MAX)] = 0.5

    def __post_init__(self) -> None:
        """Ranges again, because a value built in code passes no decoder; and the expression, which no decoder reads."""
        for field in msgspec.structs.fields(self):
            try:
                msgspec.convert(getattr(self, field.name), field.type)
            except msgspec.ValidationError as error:
                raise UserError(f"The controller's setting {field.name} is out of range: {error}.") from None
        self.overload_event()
        self._policy(())
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
        expression = Expression(self.overload, PROPERTIES, "The controller's setting overload")
        return Event(expression, self.overload_for_s)

    def control_loop(self, classes: Sequence[DeviceClass] = ()) -> ControlLoop[Any]:
        return ControlLoop(
            self._policy(classes),
            self.overload_event(),
            window_s=self.window_s,
            advice_lifetime_s=self.advice_lifetime_s,
        )

    def _policy(self, classes: Sequence[DeviceClass]) -> policies.Built:
        options = {**MICRO_BATCHES.get(self.policy, {}), **self.options}
        if self.policy == policies.COUPLED:
            inner, scaler = options.get("policy_options", {}), options.get("autoscaler_options", {})
            fitting = MICRO_BATCHES.get(str(options.get("policy", "gotin")), {})
            options["policy_options"] = {**fitting, **inner} if isinstance(inner, dict) else inner
            options["autoscaler_options"] = (
                {"nodes_max": self.nodes_max, **scaler} if isinstance(scaler, dict) else scaler
            )
        given = options.get("provisioning", {})
        if self.policy == "adaptive" and isinstance(given, dict):
            options["provisioning"] = {"nodes_max": self.nodes_max, **given}
        return policies.build(self.policy, options, default_rate_per_s=1.0 / self.default_interval_s, classes=classes)
