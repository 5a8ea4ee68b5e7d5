"""Messages per second of each gateway and of each class of devices, from the gateways' counters."""

from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from tidegate.model.observations import GatewayState

# Devices of a small class send seldom: over a second their rate would jump between none and many.
WINDOW_S = 5.0


class PublishRates(msgspec.Struct, frozen=True, kw_only=True):
    """What is not known yet is not in here."""

    gateways: Mapping[str, float] = {}
    classes: Mapping[str, float] = {}  # over all gateways


class RateWindow:
    """The last seconds of every gateway's counters. One that began anew counts from zero, and is followed anew."""

    def __init__(self) -> None:
        self._states: dict[str, deque[GatewayState]] = {}

    def follow(self, gateways: tuple[GatewayState, ...]) -> PublishRates:
        self._states = {state.name: self._states.get(state.name, deque()) for state in gateways}
        for state in gateways:
            take_in(self._states[state.name], state, WINDOW_S)
        spans = {name: (kept[0], kept[-1]) for name, kept in self._states.items()}
        classes = {name for _, last in spans.values() for name in last.classes}
        return PublishRates(
            gateways=_known({name: per_second(*span, lambda one: one.publishes) for name, span in spans.items()}),
            classes=_known({name: _class_rate(name, list(spans.values())) for name in classes}),
        )


def take_in(kept: deque[GatewayState], state: GatewayState, window_s: float) -> bool:
    """Whether the state is new; what is older than the window is forgotten, and all of it where counters fell."""
    if kept and state.measured_at_s <= kept[-1].measured_at_s:
        return False
    if kept and state.publishes < kept[-1].publishes:
        kept.clear()
    kept.append(state)
    while len(kept) > 2 and kept[1].measured_at_s <= state.measured_at_s - window_s:
        kept.popleft()
    return True


def per_second(first: GatewayState, last: GatewayState, counter: Callable[[GatewayState], int]) -> float | None:
    passed_s = last.measured_at_s - first.measured_at_s
    return max(0, counter(last) - counter(first)) / passed_s if passed_s > 0 else None


def _class_rate(name: str, spans: list[tuple[GatewayState, GatewayState]]) -> float | None:
    """Half a sum would pass for the whole, so every gateway with such devices has to be known."""
    total = 0.0
    for first, last in spans:
        if name not in last.classes:
            continue
        passed_s = last.measured_at_s - first.measured_at_s
        if passed_s <= 0:
            return None
        before = first.classes[name].publishes if name in first.classes else 0
        total += (last.classes[name].publishes - before) / passed_s
    return total


def _known(rates: Mapping[str, float | None]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate is not None}
