"""The gateways that report. One that falls silent keeps its last value for a while: what is not known is no zero."""

from collections.abc import Iterable
from typing import NamedTuple

from tidegate.model.observations import GatewayState

KEPT_S = 30.0


class _Seen(NamedTuple):
    state: GatewayState
    at_s: float


class GatewaysSeen:
    """Time comes in as ``now_s``, on a clock that only grows."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def update(self, found: Iterable[GatewayState], now_s: float) -> tuple[tuple[GatewayState, ...], list[str]]:
        """All that are there, as far as anybody knows, and a sentence for each that does not report."""
        current = {one.name: one for one in found}
        self._seen |= {name: _Seen(one, now_s) for name, one in current.items() if not one.left}
        self._seen = {
            name: seen
            for name, seen in self._seen.items()
            if now_s - seen.at_s < KEPT_S and not (name in current and current[name].left)
        }
        silent = [
            f"Gateway {name} has not reported for {now_s - seen.at_s:.0f} s: its last values count for {KEPT_S:.0f} s; "
            "see its log."
            for name, seen in sorted(self._seen.items())
            if name not in current
        ]
        return tuple(seen.state for _, seen in sorted(self._seen.items())), silent
