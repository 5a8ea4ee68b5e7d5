"""Every send-rate policy by its name, and how one is built from plain options."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.control.policy import SendRatePolicy
from tidegate.control.scaling.autoscaler import AUTOSCALERS
from tidegate.control.scaling.coupling import Coupled, CoupledSettings, CouplingMode
from tidegate.control.send_rate.adaptive import Adaptive, AdaptiveSettings
from tidegate.control.send_rate.credits import Credits, CreditsSettings
from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.control.send_rate.gradient2 import Gradient2, Gradient2Settings
from tidegate.control.send_rate.none import NoProtection, NoSettings
from tidegate.control.send_rate.oracle import Oracle, OracleSettings
from tidegate.control.send_rate.spark_pid import SparkPid, SparkPidSettings
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError

Built = SendRatePolicy[Any]
POLICIES: dict[str, tuple[type[msgspec.Struct], Callable[[Any], Built]]] = {
    "none": (NoSettings, NoProtection),
    "gotin": (GotinSettings, Gotin),
    "adaptive": (AdaptiveSettings, Adaptive),
    "spark-pid": (SparkPidSettings, SparkPid),
    "gradient2": (Gradient2Settings, Gradient2),
    "credits": (CreditsSettings, Credits),
    "oracle": (OracleSettings, Oracle),
}
COUPLED = "coupled"
NAMES = (*POLICIES, COUPLED)


class _CoupledOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    mode: CouplingMode = "state-aware"
    policy: str = "gotin"
    policy_options: dict[str, Any] = {}
    autoscaler: str = "threshold"
    autoscaler_options: dict[str, Any] = {}


def build(
    name: str, options: Mapping[str, Any], *, default_rate_per_s: float, classes: Sequence[DeviceClass] = ()
) -> Built:
    """The policy of that name. Options that it does not know are refused by name."""
    if name == COUPLED:
        return _coupled(options, default_rate_per_s, classes)
    if name not in POLICIES:
        raise UserError(f"There is no policy {name!r}: choose one of {', '.join(sorted(NAMES))}.")
    settings_type, make = POLICIES[name]
    policy: Built = make(settings_for(settings_type, options, f"policy {name}", default_rate_per_s, classes))
    return policy


def _coupled(options: Mapping[str, Any], default_rate_per_s: float, classes: Sequence[DeviceClass]) -> Built:
    chosen = settings_of(_CoupledOptions, options, f"policy {COUPLED}")
    if chosen.policy == COUPLED:
        raise UserError(f"Policy {COUPLED}: its option policy is {COUPLED} itself: name a send-rate policy.")
    inner = build(chosen.policy, chosen.policy_options, default_rate_per_s=default_rate_per_s, classes=classes)
    if chosen.autoscaler not in AUTOSCALERS:
        known = ", ".join(sorted(AUTOSCALERS))
        raise UserError(f"There is no autoscaler {chosen.autoscaler!r}: choose one of {known}.")
    scaler_type, make = AUTOSCALERS[chosen.autoscaler]
    autoscaler = make(settings_of(scaler_type, chosen.autoscaler_options, f"autoscaler {chosen.autoscaler}"))
    return Coupled(CoupledSettings(mode=chosen.mode), inner, autoscaler)


def settings_for(
    kind: Any, options: Mapping[str, Any], what: str, default_rate_per_s: float, classes: Sequence[DeviceClass]
) -> Any:
    """A policy's settings from options, told what is known about the devices where it asks for that."""
    known = {field.name for field in msgspec.structs.fields(kind)}
    told = {"default_rate_per_s": default_rate_per_s, "classes": tuple(classes)}
    untold = {key: value for key, value in told.items() if key in known and key not in options}
    return msgspec.structs.replace(settings_of(kind, options, what), **untold)


def settings_of(kind: Any, options: Mapping[str, Any], what: str) -> Any:
    known = [field.name for field in msgspec.structs.fields(kind)]
    for key in options:
        if key not in known:
            raise UserError(f"{_capital(what)} has no option {key!r}: it knows {', '.join(sorted(known)) or 'none'}.")
    try:
        return msgspec.convert(dict(options), kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{_capital(what)}: {error}.") from None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
