"""Devices as a whole in rows, pure: how many there are, which access and which keys count."""

from tidegate.model.view import IdentityState, duration
from tidegate.web.components.table import Table, value_table
from tidegate.web.values.words import UNKNOWN, number


def values(identity: IdentityState, now_s: float) -> Table:
    return value_table(
        ("Registered devices", number(identity.registered)),
        ("Revoked names", number(identity.revoked)),
        ("Access", _access(identity, now_s)),
        ("Key of new passwords", identity.key_id or UNKNOWN),
        ("Key before it, still taken", identity.previous_key_id or "none"),
    )


def _access(identity: IdentityState, now_s: float) -> str:
    if not identity.access_name:
        return "as the settings say"
    return f"{identity.access_name}, applied {duration(max(0.0, now_s - identity.access_applied_at_s))} ago"
