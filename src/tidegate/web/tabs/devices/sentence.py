"""Who is connected, and who is refused over identity, in a sentence."""

from tidegate.model.identity import IDENTITY_REFUSALS
from tidegate.model.view import IdentityState
from tidegate.web.components.refusals import Gateways
from tidegate.web.values.gateway_history import Records
from tidegate.web.values.words import number


def sentence(shown: Gateways, records: Records, identity: IdentityState) -> str:
    """Say like this: 800 clients are connected. 12 refusals a minute are about identity, mostly: wrong credentials."""
    return " ".join(part for part in (_connected(shown), _refused(shown, records), rotation(identity)) if part)


def rotation(identity: IdentityState) -> str:
    """Empty where there is one key."""
    if identity.previous_key_id is None:
        return ""
    return (
        f"The rotation from key {identity.previous_key_id} to key {identity.key_id} is under way: when every device "
        "has its new password, 'tidegate device rotate --installation-key --finish' ends it."
    )


def _connected(shown: Gateways) -> str:
    if not shown:
        return "No gateway runs: no device can connect."
    connections = sum(one.connections for one in shown)
    return "1 client is connected." if connections == 1 else f"{number(connections)} clients are connected."


def _refused(shown: Gateways, records: Records) -> str:
    per_min = refused_per_min(shown, records)
    if not shown:
        return ""
    if per_min is None:
        return "How many are refused over identity is not known yet."
    if not per_min:
        return "Nobody was refused over identity in the last minute."
    (main, _), *others = sorted(per_min.items(), key=lambda item: (-item[1], item[0]))
    count = max(1, round(sum(per_min.values())))
    verb = "refusal a minute is" if count == 1 else "refusals a minute are"
    return f"{number(count)} {verb} about identity{', mostly' if others else ''}: {main}."


def refused_per_min(shown: Gateways, records: Records) -> dict[str, float] | None:
    """By reason, over all gateways; None while one of them is not known, as half a sum would pass for the whole."""
    found = dict.fromkeys(IDENTITY_REFUSALS, 0.0)
    for gateway in shown:
        record = records.get(gateway.name)
        if record is None or record.refused_per_min is None:
            return None
        for reason in IDENTITY_REFUSALS:
            found[reason] += record.refused_per_min.get(reason, 0.0)
    return {reason: per_min for reason, per_min in found.items() if per_min}
