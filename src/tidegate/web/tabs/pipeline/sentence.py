"""The pipeline in a few sentences and a few numbers: who works, which slice is behind, how the tables are."""

from collections.abc import Iterable, Sequence

from tidegate.model.observations import SliceState
from tidegate.model.view import AGE_S_CAUTION, ChainStates, duration, seconds
from tidegate.web.components.stations import Station
from tidegate.web.tabs.pipeline.maintenance import is_silent, last_runs, upkeep_sentence
from tidegate.web.tabs.pipeline.slices import furthest_behind
from tidegate.web.tabs.pipeline.tables import Records, refused, refused_per_min
from tidegate.web.values.words import UNKNOWN, bytes_of, number, rate

# So many of a node's newest batches tell whether it is at its limit.
BATCHES_JUDGED = 5
NO_NODE = "no processing node runs"


def sentence(chain: ChainStates, records: Records, now_s: float) -> str:
    """Say like this: 2 processing nodes take 480 msg/s, 500 arrive; node-1 is at its limit. All 8 slices are …"""
    parts = (f"{_working(chain, records)}.", *_behind(chain.slices), upkeep_sentence(chain.tables, now_s))
    return " ".join(parts)


def _working(chain: ChainStates, records: Records) -> str:
    living = [node for node in chain.nodes if node.alive]
    if not living:
        return "No processing node runs: readings wait in the brokers"
    who = _counted(len(living), "processing node")
    processed, arriving = totals(chain, records)
    if processed is None:
        words = f"{who} {'runs' if len(living) == 1 else 'run'}, how much is processed is not known yet"
    else:
        arrive = f", {number(arriving)} arrive" if arriving is not None else ""
        words = f"{who} {'takes' if len(living) == 1 else 'take'} {number(processed)} msg/s{arrive}"
    limited = [node.name for node in living if is_at_limit(records, node.name)]
    gone = [node.name for node in chain.nodes if not node.alive]
    words += f"; {_and(limited)} {'is at its' if len(limited) == 1 else 'are at their'} limit" if limited else ""
    return words + (f"; {_and(gone)} {'does' if len(gone) == 1 else 'do'} not answer" if gone else "")


def _behind(slices: tuple[SliceState, ...]) -> Iterable[str]:
    if not slices:
        return
    unknown = sum(one.waiting is None for one in slices)
    last = furthest_behind(slices)
    if unknown == len(slices):
        yield "How far the slices are is not known."
    elif last is None or (last.age_s is not None and last.age_s < AGE_S_CAUTION):
        fresh = "up to date" if last is None else f"less than {seconds(AGE_S_CAUTION)} behind"
        known = f"{len(slices) - unknown} of {len(slices)} slices are" if unknown else f"All {len(slices)} slices are"
        yield f"{known} {fresh}{', of the others it is not known' if unknown else ''}."
    else:
        old = (
            f"its oldest reading waits for {seconds(last.age_s)}"
            if last.age_s is not None
            else "for how long is unknown"
        )
        yield f"Slice {last.number} is furthest behind: {number(last.waiting)} wait, {old}."
    if moving := [str(one.number) for one in slices if one.taker is not None]:
        yield f"{_slices(moving)} {_is(moving)} on the way to another node."
    if free := [str(one.number) for one in slices if one.owner is None]:
        every = len(free) == len(slices)
        yield "Nobody works on any slice." if every else f"Nobody works on {_slices(free).lower()}."


def is_at_limit(records: Records, name: str) -> bool:
    """Whether most of its newest batches were."""
    newest = records[name].batches[-BATCHES_JUDGED:] if name in records else ()
    return 2 * sum(one.at_limit for one in newest) > len(newest)


def totals(chain: ChainStates, records: Records) -> tuple[float | None, float | None]:
    """Processed and arriving, over the nodes that answer; None where one of them is not known."""
    living = [records.get(node.name) for node in chain.nodes if node.alive]
    processed = _sum(one.processed_per_s if one else None for one in living)
    arriving = _sum(one.now.arriving_per_s if one and one.now else None for one in living)
    return processed, arriving


def tiles(chain: ChainStates, records: Records, now_s: float) -> tuple[Station, ...]:
    """The same as numbers, each with what it is made of."""
    processed, arriving = totals(chain, records)
    living = [node for node in chain.nodes if node.alive]
    known = [found for node in living if (found := _capacity(records, node.name)) is not None]
    seen = f"as seen of {len(known)} of {len(living)} nodes" if known else "no batch was long or cut by a limit yet"
    rates = (
        ("Arriving", arriving, "in the slices of the nodes"),
        ("Processed", processed, "over the last five seconds"),
        ("Capacity", sum(known) if known else None, seen),
    )
    return (
        *(
            Station(name=name, value=rate(value) if living else UNKNOWN, detail=detail if living else NO_NODE)
            for name, value, detail in rates
        ),
        _behind_tile(chain.slices),
        Station(
            name="Refused readings",
            value=f"{number(refused_per_min(chain.nodes, records) if living else None)} per minute",
            detail=f"{number(refused(chain.nodes).total())} so far" if chain.nodes else NO_NODE,
        ),
        _tables_tile(chain, now_s),
    )


def _behind_tile(slices: tuple[SliceState, ...]) -> Station:
    unknown = sum(one.waiting is None for one in slices)
    last = furthest_behind(slices)
    alarms = (f"{unknown} of {len(slices)} not known",) if unknown else ()
    if not slices or unknown == len(slices):
        return Station(name="Furthest behind", value=UNKNOWN, detail="no slice is known", alarms=alarms)
    if last is None:
        return Station(name="Furthest behind", value="up to date", detail="nothing waits in the slices", alarms=alarms)
    value = seconds(last.age_s) if last.age_s is not None else UNKNOWN
    detail = f"slice {last.number} on {last.owner or 'nobody'}, {number(last.waiting)} wait"
    return Station(name="Furthest behind", value=value, detail=detail, alarms=alarms)


def _tables_tile(chain: ChainStates, now_s: float) -> Station:
    said = chain.tables
    if said is None or not said.tables:
        return Station(name="Tables", value=UNKNOWN, detail="no maintainer has looked at them")
    files = sum(one.active_files for one in said.tables.values())
    silent = (f"as they were {duration(now_s - said.at_s)} ago",) if is_silent(said, now_s) else ()
    failed = tuple(f"maintenance of {run.table} failed" for run in last_runs(said) if run.problem is not None)
    return Station(
        name="Tables",
        value=f"{number(files)} files",
        detail=f"{bytes_of(sum(one.bytes for one in said.tables.values()))} in {_counted(len(said.tables), 'table')}",
        alarms=(*silent, *failed),
    )


def _capacity(records: Records, name: str) -> float | None:
    now = records[name].now if name in records else None
    return now.capacity_per_s if now else None


def _sum(values: Iterable[float | None]) -> float | None:
    """Half a sum would pass for the whole, so all of it has to be known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if found and len(known) == len(found) else None


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _slices(numbers: Sequence[str]) -> str:
    return f"{'Slice' if len(numbers) == 1 else 'Slices'} {_and(numbers)}"


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _and(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
