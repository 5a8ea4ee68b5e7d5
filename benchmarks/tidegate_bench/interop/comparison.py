"""Which observations have to be equal, and in words where they are not. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidegate.report.checks import Check

Observation = Mapping[str, Any]

DIFFERENCE_CHARACTERS_MAX = 300
ON_NATS, ON_MOSQUITTO, FIVE_ON_NATS = "3.1.1 on NATS", "5 on Mosquitto", "5 on NATS"
# Compared at least this often, or "the same" says little.
COMPARED_MIN = {ON_NATS: 75, ON_MOSQUITTO: 110, FIVE_ON_NATS: 75}

# What a broker of MQTT 3.1.1 cannot carry for MQTT 5 clients: behaviour -> how docs/mqtt5.md names it.
NOT_CARRIED: dict[str, str] = {
    "user properties": "user property",
    "content type": "content type",
    "response topic": "response topic",
    "request and response": "correlation data",
    "message expiry": "message expiry",
    "shared subscriptions": "shared subscription",
    "subscription identifiers": "subscription identifier",
    "will delay": "will delay",
    "reason codes": "reason codes of the broker",
}
# Said by the server about itself: a gateway that ends MQTT 5 speaks for itself.
ABOUT_THE_SERVER = ("announcements",)
# Parts of an observation for which MQTT 3.1.1 has no words.
_ONLY_IN_5 = ("close code", "unsubscribed")
# CONNACK: the code of MQTT 3.1.1 and the reason code of MQTT 5 that says the same.
_SAME_CODES = {1: 0x84, 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87}


class ComparisonOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One behaviour of one client on one stack: compared, or not applicable and why."""

    stack: str
    client: str
    behaviour: str
    same: bool | None  # None: not applicable
    note: str = ""  # the difference, or why it is not applicable

    def row(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


def across_versions(observation: Observation) -> Observation:
    """An observation of either version without what only one of them can say."""
    kept = {name: value for name, value in observation.items() if name not in _ONLY_IN_5}
    if "code" in kept:
        kept["code"] = _SAME_CODES.get(kept["code"], kept["code"])
    return kept


def difference(direct: Observation, through: Observation) -> str:
    """What is not equal, in words; nothing where all is."""
    parts = [
        f"{name}: directly {_shown(direct.get(name))}, through the gateway {_shown(through.get(name))}"
        for name in dict.fromkeys((*direct, *through))
        if direct.get(name) != through.get(name)
    ]
    return "; ".join(parts)


def judge(direct: Sequence[Observation], through: Observation, *, versions_differ: bool) -> tuple[bool, str]:
    """Whether the broker itself did the same in one of its runs, and the difference to its first run if not."""
    sides = [across_versions(side) if versions_differ else side for side in (*direct, through)]
    if any(side == sides[-1] for side in sides[:-1]):
        return True, ""
    return False, difference(sides[0], sides[-1])


def checks(outcomes: Sequence[ComparisonOutcome]) -> list[Check]:
    found = []
    for stack, least in COMPARED_MIN.items():
        compared = [outcome for outcome in outcomes if outcome.stack == stack and outcome.same is not None]
        same = bool(compared) and all(outcome.same for outcome in compared)
        found.append(Check.equal(f"same_as_direct[{stack}]", same, True))
        found.append(Check.at_least(f"compared[{stack}]", len(compared), least))
    return found


def _shown(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    if len(text) > DIFFERENCE_CHARACTERS_MAX:
        return f"{text[:DIFFERENCE_CHARACTERS_MAX]} …"
    return text
