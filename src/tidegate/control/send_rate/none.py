"""No protection: every device keeps its default, whatever happens. What every other policy is measured against."""

import msgspec

from tidegate.control.policy import Seen, Verdict


class NoState(msgspec.Struct, frozen=True):
    """Nothing is remembered."""


class NoSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing can be chosen."""


class NoProtection:
    def __init__(self, _: NoSettings | None = None) -> None:
        pass

    @property
    def state_type(self) -> type[NoState]:
        return NoState

    def initial(self) -> NoState:
        return NoState()

    def step(self, state: NoState, seen: Seen) -> tuple[NoState, Verdict]:
        verdict = Verdict(
            phase="overload" if seen.overload else "idle",
            rate_per_device=None,
            capacity_per_s=None,
            rule="no protection: devices keep their default",
            rejected="hold the devices: protection is not switched on",
        )
        return state, verdict
