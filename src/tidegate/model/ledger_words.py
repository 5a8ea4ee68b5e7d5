"""How complete the tables are, in one sentence: the same on the dashboard and in the terminal."""

from tidegate.model.ledger import CompletenessState
from tidegate.model.times import clock_time
from tidegate.model.view import StateSummary, seconds

HOUR_S = 3600.0
# A check that stands still for longer has stopped.
STALE_S = 60.0


def summary_of(state: CompletenessState | None, now_s: float) -> StateSummary:
    """Of this hour and the last, as far as it is about acknowledgements; of two days, as far as about holes."""
    if state is None:
        return StateSummary(
            sentence="Nobody compares what was acknowledged with the tables: 'tidegate ledger watch' does.",
            severity="caution",
        )
    missing = sum(hour.missing for hour in state.hours)
    if missing and state.holes:
        newest = state.holes[-1]
        are = "reading is" if missing == 1 else "readings are"
        last = f", last: {newest.sentence}." if missing > newest.readings else f": {newest.sentence}."
        return StateSummary(sentence=f"{missing:,} acknowledged {are} in no table{last}", severity="danger")
    if now_s - state.at_s > STALE_S:
        since = f"since {clock_time(state.at_s)}" if state.left else f"for {seconds(now_s - state.at_s)}"
        return StateSummary(
            sentence=f"What was acknowledged has not been compared with the tables {since}.", severity="caution"
        )
    return StateSummary(sentence=_complete(state, now_s), severity="good" if state.waits_for is None else "caution")


def _complete(state: CompletenessState, now_s: float) -> str:
    begins_s = now_s // HOUR_S * HOUR_S - HOUR_S
    hours = [hour for hour in state.hours if hour.hour_s >= begins_s]
    count, waiting = sum(hour.acknowledged for hour in hours), sum(hour.waiting for hour in hours)
    rejected, unwatched = sum(hour.rejected for hour in hours), sum(hour.unwatched for hour in hours)
    since = f"since {clock_time(begins_s)}"
    if not count:
        said = f"No reading with an identity was acknowledged {since}"
    elif waiting:
        said = f"{count:,} readings were acknowledged {since}, of {waiting:,} it is not known yet"
    else:
        said = f"Every reading acknowledged {since} is in the tables: {count:,}"
    more = f", {rejected:,} of them rejected" if rejected else ""
    more += f"; {unwatched:,} could not be checked" if unwatched else ""
    why = f" ({state.waits_for.rstrip('.')})" if state.waits_for is not None and waiting else ""
    return f"{said}{more}{why}."
