"""What is wrong, in sentences: which readings are missing, and that some cannot be checked."""

from collections.abc import Sequence

from tidegate.model.ledger import Hole, HourSums

# An alarm stands for so long; the list of holes, and the sums, tell for longer.
ALARM_S = 3600.0


def alarms_of(hours: Sequence[HourSums], holes: Sequence[Hole], now_s: float) -> tuple[str, ...]:
    alarms = []
    fresh = [hole for hole in holes if now_s - hole.named_s < ALARM_S]
    if fresh:
        alarms.append(_missing(fresh))
    unwatched = sum(one.unwatched for one in hours if now_s - one.hour_s < 2 * ALARM_S)
    if unwatched:
        alarms.append(
            f"{unwatched:,} readings acknowledged within the last two hours cannot be checked against the tables: "
            "gateways, control bus or the check itself had no room or no connection (docs/ledger.md)."
        )
    return tuple(alarms)


def _missing(holes: Sequence[Hole]) -> str:
    first, count = holes[0], sum(hole.readings for hole in holes)
    devices = len({hole.device for hole in holes})
    are = "acknowledged reading is" if count == 1 else "acknowledged readings are"
    others = (
        "" if devices == 1 else ", and another device's" if devices == 2 else f", and {devices - 1:,} other devices'"
    )
    return f"{count:,} {are} in no table: {first.sentence}{others}; 'tidegate ledger watch' names all."
