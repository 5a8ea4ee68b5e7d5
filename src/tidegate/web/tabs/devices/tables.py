"""Devices as a whole in rows, pure: how many there are, which access and which keys count."""

from tidegate.model.view import IdentityState, duration
from tidegate.web.components.table import Table, value_table
from tidegate.web.values.words import UNKNOWN, number


def values(identity: IdentityState, now_s: float) -> Table:
    return value_table(
        ("Registered devices", number(identity.registered)),
        ("Revoked names", number(identity.revoked)),
        ("Access", identity.access_name or "as the settings say"),
        *((("Access applied", _ago(identity.access_applied_at_s, now_s)),) if identity.access_name else ()),
        ("Current key", identity.key_id or UNKNOWN),
        ("Previous key", identity.previous_key_id or "none"),
    )


def _ago(at_s: float, now_s: float) -> str:
    return f"{duration(max(0.0, now_s - at_s))} ago"
