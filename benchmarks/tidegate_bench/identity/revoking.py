"""How fast somebody is thrown out, where a hundred thousand are revoked already: from the command to the last closed
connection, on several processes of a gateway, and who else notices."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tidegate.bus.client import Bus
from tidegate.bus.documents import GATEWAYS, REVOKED
from tidegate.bus.identity import REVOKED_FILE
from tidegate.bus.issued import Credentials
from tidegate.local.waiting import wait_until
from tidegate.report.checks import Check
from tidegate_bench.identity.cells import TRANSPORTS
from tidegate_bench.identity.client import MatrixClient
from tidegate_bench.identity.commands import issued, named, tidegate
from tidegate_bench.identity.grounds import Grounds
from tidegate_bench.identity.held import WILL, connect_packet, held, opened, version_of, will_topic
from tidegate_bench.identity.proofs import LISTENER, Proof
from tidegate_bench.rig.servers import ServerProcess
from tidegate_bench.rig.spreads import SPREAD, spread

REVOKED_BEFORE = 100_000
AT_ONCE, BYSTANDERS, REPETITIONS = 50, 50, 5
PROCESSES = 2
CLOSED_S_MAX = 1.0
# So long is waited for the last to be closed, for all of them to be counted, and for a will that must not come.
WAIT_S_MAX, COUNTED_S_MAX, WILL_S = 30.0, 10.0, 1.0
BEFORE, REVOKING = "revoked before", "revoking"

Row = dict[str, Any]


def revoking_rows(grounds: Grounds, tell: Callable[[str], None]) -> list[Row]:
    """The application that listens for wills has to be one already."""
    crowd = AT_ONCE + BYSTANDERS
    names = [f"held-{number:04d}" for number in range(REPETITIONS * crowd)]
    passwords = issued(grounds.state, grounds.directory / "held.csv", [*names, LISTENER])
    with grounds.servers.gateway(grounds.state, {"processes": PROCESSES}) as gateway:
        tell(f"Revoking {REVOKED_BEFORE:,} devices with one command.")
        rows = [_revoked_before(grounds)]
        with _listener(gateway, passwords) as listener:
            for number in range(REPETITIONS):
                tell(f"Revoking {AT_ONCE} connected devices, {number + 1} of {REPETITIONS}.")
                chosen = names[number * crowd : (number + 1) * crowd]
                rows.append(_Round(grounds, gateway, passwords, listener).row(number, chosen))
    return [*rows, *(_spread(rows, name) for name in ("closed_from_start_s", "closed_from_end_s"))]


def _revoked_before(grounds: Grounds) -> Row:
    names = [f"gone-{number:06d}" for number in range(REVOKED_BEFORE)]
    before_bytes = _stored_bytes(grounds)
    listed = named(grounds.directory / "gone.txt", names)
    seconds = tidegate("device", "revoke", "--from", listed, state=grounds.state)
    return {
        "part": BEFORE,
        "devices": REVOKED_BEFORE,
        "command_s": round(seconds, 2),
        "bus_bytes": _stored_bytes(grounds) - before_bytes,
        "copy_bytes": (grounds.state / REVOKED_FILE).stat().st_size,
    }


def _stored_bytes(grounds: Grounds) -> int:
    with Bus(grounds.installation.control_urls) as bus:
        return sum(len(entry.value) for entry in bus.entries(REVOKED).values())


@contextlib.contextmanager
def _listener(gateway: ServerProcess, passwords: Credentials) -> Iterator[MatrixClient]:
    user, password = passwords(LISTENER)
    client = MatrixClient(TRANSPORTS[0], Proof(user=user, password=password), LISTENER)
    told = [client.open(gateway.address), client.subscribe("telemetry/#")]
    assert all(one.granted for one in told), f"nobody listens for wills: {told}"
    try:
        yield client
    finally:
        client.close()


class _Round:
    """One command, while those it names and as many others are connected."""

    def __init__(
        self, grounds: Grounds, gateway: ServerProcess, passwords: Credentials, listener: MatrixClient
    ) -> None:
        self._grounds, self._gateway, self._passwords, self._listener = grounds, gateway, passwords, listener

    def row(self, number: int, names: Sequence[str]) -> Row:
        revoked, others = names[:AT_ONCE], names[AT_ONCE:]
        packets = {name: self._packet(at, name) for at, name in enumerate(names)}
        with held(self._gateway.address, packets) as clients, ThreadPoolExecutor(1) as threads:
            processes = self._per_process(len(names))
            listed = named(self._grounds.directory / f"revoked-{number}.txt", list(revoked))
            began_s = time.monotonic()
            command = threads.submit(tidegate, "device", "revoke", "--from", listed, state=self._grounds.state)
            wait_until(lambda: len(clients.closed(revoked)) == len(revoked), WAIT_S_MAX, 0.005)
            ended_s = began_s + command.result()
            time.sleep(WILL_S)
            closed_s = clients.closed(revoked)
            bystanders_closed = len(clients.closed(others))
            let_in = sum(self._is_let_in(packets[name]) for name in revoked)
        # Those who vanish now leave theirs: whoever hears them would have heard the others.
        wait_until(lambda: self._wills(others) >= len(others), COUNTED_S_MAX, 0.05)
        last_s = max(closed_s) if len(closed_s) == len(revoked) else began_s + WAIT_S_MAX
        return {
            "part": REVOKING,
            "repetition": number,
            "devices": len(revoked),
            "closed": len(closed_s),
            "per_process": processes,
            "command_s": round(ended_s - began_s, 3),
            "first_closed_from_start_s": round(min(closed_s, default=last_s) - began_s, 3),
            "closed_from_start_s": round(last_s - began_s, 3),
            "closed_from_end_s": round(last_s - ended_s, 3),
            "wills_published": self._wills(revoked),
            "bystanders": len(others),
            "bystanders_closed": bystanders_closed,
            "bystanders_wills": self._wills(others),
            "let_in_again": let_in,
        }

    def _packet(self, number: int, name: str) -> bytes:
        return connect_packet(name, self._passwords(name)[1], version_of(number))

    def _is_let_in(self, packet: bytes) -> bool:
        connection, code = opened(self._gateway.address, packet)
        connection.close()
        return code == 0

    def _wills(self, names: Sequence[str]) -> int:
        topics = {will_topic(name) for name in names}
        return sum(message.payload == WILL and message.topic in topics for message in list(self._listener.heard))

    def _per_process(self, count: int) -> list[int]:
        """Connections of each process, once all of them are reported."""
        name, found = f"bench-{self._gateway.port}", list[int]()
        with Bus(self._grounds.installation.control_urls) as bus:

            def are_counted() -> bool:
                state = bus.get(GATEWAYS, name)
                found[:] = [] if state is None else [process.connections for process in state.processes]
                return sum(found) >= count

            wait_until(are_counted, COUNTED_S_MAX, 0.1)
        return found


def _rounds(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["part"] == REVOKING]


def _spread(rows: Sequence[Row], name: str) -> Row:
    return {"part": SPREAD, **spread(name, [row[name] for row in _rounds(rows)])}


def _late_s(row: Row) -> float:
    """Whoever is closed before the command ends is not late."""
    return max(0.0, float(row["closed_from_end_s"]))


def revoking_checks(rows: Sequence[Row]) -> list[Check]:
    rounds = _rounds(rows)
    return [
        Check.at_most("revoked_closed_s", max(_late_s(row) for row in rounds), CLOSED_S_MAX),
        Check.equal("wills_of_revoked_published", sum(row["wills_published"] for row in rounds), 0),
        Check.equal("wills_of_others_missing", sum(row["bystanders"] - row["bystanders_wills"] for row in rounds), 0),
        Check.equal("bystanders_closed", sum(row["bystanders_closed"] for row in rounds), 0),
        Check.equal("revoked_let_in_again", sum(row["let_in_again"] for row in rounds), 0),
        Check.at_least("gateway_processes_used", min(_busy(row) for row in rounds), PROCESSES),
    ]


def _busy(row: Row) -> int:
    return sum(connections > 0 for connections in row["per_process"])
