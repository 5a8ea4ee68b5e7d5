"""Which observations have to be equal, and in words where they are not. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tidegate.report.checks import Check
from tidegate_bench.interop.rates import LEVEL, LOOKS, Tally, Verdict, decide

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
    tally: Tally | None = None  # of what was played again because the first plays differ
    verdict: Verdict | None = None

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "stack": self.stack,
            "client": self.client,
            "behaviour": self.behaviour,
            "same": self.same,
            "note": self.note,
        }
        if self.tally is not None and self.verdict is not None:
            row |= {**_counted(self.tally), "p": self.verdict.p, "p_corrected": self.verdict.p_corrected}
        return row


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


def differ(direct: Observation, through: Observation, *, versions_differ: bool) -> str:
    """The difference that the first plays show, in words; nothing where there is none."""
    return difference(*(across_versions(side) if versions_differ else side for side in (direct, through)))


def text_of(observation: Observation, *, versions_differ: bool) -> str:
    """By which equal observations are counted as one."""
    seen = across_versions(observation) if versions_differ else observation
    return msgspec.json.encode(seen, order="deterministic").decode()


def judged(outcome: ComparisonOutcome, tally: Tally, behaviours: int) -> ComparisonOutcome:
    """A comparison whose first plays differ, by what came of the further ones. What could not be played often enough
    is not the same."""
    verdict = decide(tally, behaviours)
    return msgspec.structs.replace(outcome, same=verdict.same is True, tally=tally, verdict=verdict)


def rule_row(behaviours: int) -> dict[str, Any]:
    """By what the repeated comparisons are judged."""
    return {"part": "rule", "behaviours": behaviours, "looks": list(LOOKS), "level": LEVEL}


def checks(outcomes: Sequence[ComparisonOutcome]) -> list[Check]:
    every = [outcome.same for outcome in outcomes if outcome.same is not None]
    found = [Check.equal("same_as_direct", bool(every) and all(every), True)]
    for stack, least in COMPARED_MIN.items():
        compared = [outcome for outcome in outcomes if outcome.stack == stack and outcome.same is not None]
        same = bool(compared) and all(outcome.same for outcome in compared)
        found.append(Check.equal(f"same_as_direct[{stack}]", same, True))
        found.append(Check.at_least(f"compared[{stack}]", len(compared), least))
    return found


def _counted(tally: Tally) -> dict[str, Any]:
    """How often the broker's usual observation was made on either side, and every other one beside it."""
    (usual, _), *_ = tally.direct.most_common(1) or tally.through.most_common(1) or [("{}", 0)]
    others = [text for text, _ in (tally.direct + tally.through).most_common() if text != usual]
    sides = {"direct": tally.direct, "through": tally.through}
    return {
        **{f"{side}_plays": counts.total() for side, counts in sides.items()},
        **{f"{side}_otherwise": counts.total() - counts[usual] for side, counts in sides.items()},
        "otherwise": [
            {"what": _otherwise(usual, text), **{side: counts[text] for side, counts in sides.items()}}
            for text in others
        ],
    }


def _otherwise(usual: str, text: str) -> str:
    first, second = msgspec.json.decode(usual), msgspec.json.decode(text)
    parts = [
        f"{name}: {_shown(second.get(name))}"
        for name in dict.fromkeys((*first, *second))
        if first.get(name) != second.get(name)
    ]
    return "; ".join(parts)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    if len(text) > DIFFERENCE_CHARACTERS_MAX:
        return f"{text[:DIFFERENCE_CHARACTERS_MAX]} …"
    return text
