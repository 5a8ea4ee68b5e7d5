"""Numbers, modes and phases as people read them: one vocabulary for the whole dashboard."""

from tidegate.model.decisions import Mode
from tidegate.model.observations import GatewayState
from tidegate.model.view import View

UNKNOWN = "?"
SEVERITY_WORDS = {"good": "● Good", "caution": "▲ Caution", "danger": "■ Danger"}
PHASE_WORDS = {"idle": "not held", "protect": "held", "recover": "recovering"}
# Older than this, values are called stale: several measurements in a row are missing.
STALE_S = 5.0


def number(value: float | None) -> str:
    """Whole numbers with thousands separated; below ten two digits that count."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def phase_word(phase: str) -> str:
    return PHASE_WORDS.get(phase, phase)


def mode_word(mode: Mode) -> str:
    return "frozen" if mode.frozen else mode.send_rate


def view_age_s(view: View, now_s: float) -> float | None:
    """How old the newest measurement is; None where there is none yet."""
    return max(0.0, now_s - view.now.at_s) if view.now else None


class GatewayRates:
    """Messages per second of each gateway, from the differences of its counter between two states."""

    def __init__(self) -> None:
        self._last: dict[str, GatewayState] = {}
        self._rates: dict[str, float] = {}

    def follow(self, gateways: tuple[GatewayState, ...]) -> dict[str, float]:
        """The rates known so far. A gateway that began anew counts from zero, so its rate is unknown for a moment."""
        for state in gateways:
            before = self._last.get(state.name)
            if before is not None and state.measured_at_s <= before.measured_at_s:
                continue
            self._last[state.name] = state
            self._rates.pop(state.name, None)
            if before is not None and state.publishes >= before.publishes:
                passed_s = state.measured_at_s - before.measured_at_s
                self._rates[state.name] = (state.publishes - before.publishes) / passed_s
        present = {state.name for state in gateways}
        return {name: rate for name, rate in self._rates.items() if name in present}
