"""What is known of a device, in words and for programs: the same in the terminal, on the dashboard and in the API."""

from collections.abc import Sequence
from typing import Any

from tidegate.model.clients import ClientAnswer, ClientState, DeviceReport
from tidegate.model.registration import Entry
from tidegate.model.times import date_and_time


def state_of(entry: Entry, now_s: float) -> str:
    revocation = entry.revocation
    if revocation is None:
        return "allowed"
    if revocation.everywhere:
        return f"revoked since {date_and_time(revocation.from_s)}"
    lowest = revocation.lowest(now_s)
    if lowest < revocation.generation_min:
        return f"allowed; passwords of generation {lowest} count until {date_and_time(revocation.from_s)}"
    return f"allowed; passwords below generation {lowest} are refused"


def described(name: str, entry: Entry, now_s: float) -> dict[str, Any]:
    registered, revocation = entry.registered, entry.revocation
    return {
        "name": name,
        "registered": registered is not None,
        "generation": entry.generation,
        "added_s": None if registered is None else registered.added_s,
        "note": None if registered is None else registered.note,
        "revoked": entry.is_revoked,
        "generation_min": 1 if revocation is None else revocation.lowest(now_s),
        "changes_s": None if revocation is None or revocation.from_s <= now_s else revocation.from_s,
    }


def described_fully(report: DeviceReport, now_s: float) -> dict[str, Any]:
    """With what gateways say of it."""
    return {**described(report.name, report.entry, now_s), "gateways": report.answers}


def lines(report: DeviceReport, now_s: float) -> list[str]:
    """All that is said of a device; whoever knows more about it adds lines here."""
    return [*_kept(report.name, report.entry, now_s), *_connected(report.answers, now_s)]


def _kept(name: str, entry: Entry, now_s: float) -> list[str]:
    registered = entry.registered
    if registered is None:
        known = (
            "not registered; a password of generation 1 counts all the same" if entry == Entry() else "not registered"
        )
    else:
        known = f"registered since {date_and_time(registered.added_s)}, generation {registered.generation}"
    note = [] if registered is None or registered.note is None else [f"note: {registered.note}"]
    return [f"{name}: {known}.", *note, f"Now: {state_of(entry, now_s)}."]


def _connected(answers: Sequence[ClientAnswer], now_s: float) -> list[str]:
    """What gateways say of it."""
    found = [_connection(one, now_s) for answer in answers for one in answer.connections]
    ended = max((one.ended for one in answers if one.ended is not None), key=lambda one: one.at_s, default=None)
    if ended is not None:
        found.append(f"Last refused or ended {date_and_time(ended.at_s)}, from {ended.address}: {ended.reason}.")
    return found or ["No gateway has seen it lately."]


def _connection(one: ClientState, now_s: float) -> str:
    held = f" {one.held:,} publishes wait, for {one.held_s:.3g} s." if one.held else ""
    limit = f" {one.limit.sentence()}" if one.limit is not None else ""
    rate = f" It may send {one.rate_per_s:.3g} a second." if one.rate_per_s is not None else ""
    expires = f" Its proof ends in {one.expires_s - now_s:,.0f} s." if one.expires_s is not None else ""
    return (
        f"Connected to {one.gateway} from {one.address} as {one.client_id or 'a client without a name'} "
        f"(MQTT {one.version}, {one.method}, {one.broker}): {one.credits_left:,.0f} credits left, "
        f"{one.subscriptions} subscriptions.{rate}{held}{limit}{expires}"
    )


def counted(names: Sequence[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{len(names):,} devices are"
