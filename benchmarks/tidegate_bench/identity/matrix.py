"""The matrix is played: several cells at a time, while an application listens to everything at each broker."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tidegate.local.waiting import wait_until
from tidegate.model.errors import TidegateError
from tidegate_bench.identity.cells import MOSQUITTO, NATS, Cell
from tidegate_bench.identity.client import MatrixClient
from tidegate_bench.identity.grounds import Grounds
from tidegate_bench.identity.judging import Arrival, Row, Seen, judged, stored_row
from tidegate_bench.identity.plays import Dispatcher, Stage, play
from tidegate_bench.identity.proofs import DISPATCHER, LISTENER
from tidegate_bench.identity.readings import arrivals_in_log, arrivals_of
from tidegate_bench.identity.service import account_service
from tidegate_bench.identity.site import Builder, Site

AT_A_TIME = 12
BROKERS = (NATS, MOSQUITTO)
# What was sent last has arrived when nothing has come for so long.
QUIET_S, QUIET_S_MAX = 2.0, 30.0


def matrix_rows(grounds: Grounds, cells: Sequence[Cell], tell: Callable[[str], None]) -> list[Row]:
    """A row per cell, and one about the log."""
    tell("Issuing passwords, certificates and tokens; starting Mosquitto and three gateways.")
    with account_service() as service, Builder(grounds).built(cells, service) as site:
        seen, arrivals = _played(site, [cell for cell in cells if not cell.not_applicable], tell)
        tell("Reading every slice of the log.")
        arrivals += arrivals_in_log(grounds.installation)
    return [*(one.row() for one in judged(cells, seen, arrivals)), stored_row(cells, arrivals)]


def _played(site: Site, cells: Sequence[Cell], tell: Callable[[str], None]) -> tuple[dict[int, Seen], list[Arrival]]:
    with contextlib.ExitStack() as opened:
        listeners = {broker: opened.enter_context(_listener(site, broker)) for broker in BROKERS}
        dispatchers = {
            broker: Dispatcher(opened.enter_context(site.application(broker, DISPATCHER))) for broker in BROKERS
        }
        stage, seen = Stage(site, dispatchers), dict[int, Seen]()
        with ThreadPoolExecutor(AT_A_TIME) as threads:
            for cell, found in zip(cells, threads.map(lambda one: play(stage, one), cells), strict=True):
                seen[cell.number] = found
                tell(f"{len(seen)} of {len(cells)} cells played: {cell.method}, {cell.transport.name}, {cell.case}.")
        for client in listeners.values():
            _await_quiet(client)
        # Whoever comes now hears what was retained meanwhile.
        late = {broker: opened.enter_context(_listener(site, broker)) for broker in BROKERS}
        for client in late.values():
            _await_quiet(client)
        heard = [(broker, client.heard) for clients in (listeners, late) for broker, client in clients.items()]
    return seen, [arrival for broker, messages in heard for arrival in arrivals_of(broker, messages)]


@contextlib.contextmanager
def _listener(site: Site, broker: str) -> Iterator[MatrixClient]:
    with site.application(broker, LISTENER) as client:
        told = client.subscribe("#")
        if not told.granted:
            raise TidegateError(f"The application that listens to everything at {broker} may not: {told.words}.")
        yield client


def _await_quiet(client: MatrixClient) -> None:
    heard, since_s = -1, time.monotonic()

    def is_quiet() -> bool:
        nonlocal heard, since_s
        if len(client.heard) != heard:
            heard, since_s = len(client.heard), time.monotonic()
        return time.monotonic() - since_s >= QUIET_S

    wait_until(is_quiet, QUIET_S_MAX, 0.05)
