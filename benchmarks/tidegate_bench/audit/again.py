"""Make all decisions again that the audit of an installation has: a process of its own, with nothing but the bus.

``python -m tidegate_bench.audit.again STATE NAME=VALUE``: the second argument, if there is one, is an option of the
policy that shall be another one. One JSON object on standard output.
"""

import sys
from pathlib import Path

import msgspec

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.controller.replaying import replayed

DECISIONS_MAX = 1_000_000


def main(state: Path, options: dict[str, object]) -> dict[str, object]:
    with Bus(load_installation(state).control_urls) as bus:
        audit = AuditLog(bus)
        decisions = audit.last(DECISIONS_MAX)
        equal, without, differs = 0, 0, []
        for decision in decisions:
            played = audit.round(decision.round)
            if played is None:
                without += 1
                continue
            found = replayed(decision, played, options)
            equal += found.equal
            if not found.equal:
                differs.append({"plan": decision.plan, "by": decision.by, "differs": found.differs})
    by = {name: sum(one.by == name for one in decisions) for name in {one.by for one in decisions}}
    return {
        "decisions": len(decisions),
        "equal": equal,
        "without_round": without,
        "by": by,
        "differs": differs[:20],
        "span_s": decisions[-1].at_s - decisions[0].at_s if decisions else 0.0,
    }


if __name__ == "__main__":
    given = dict(text.split("=", 1) for text in sys.argv[2:])
    said = main(Path(sys.argv[1]), {name: float(value) for name, value in given.items()})
    sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
