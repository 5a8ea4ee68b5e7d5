"""A load on an MQTT address, as a process of its own: ``python -m tidegate_bench.gateway.load``.

It connects, reports that in a line of JSON, and waits for a line on its standard input. Then it does what it was asked
for and says in a second line what it did; what it sent has then arrived at the broker. It ends with its standard input.

* ``paced``: one publish per send, evenly in time. Where the peer or this process does not keep up, it says how late.
* ``batched``: many publishes per send, as fast as they go.
* ``probe``: QoS 1 publishes at seeded moments, and how long each took to be acknowledged.
* ``idle``: nothing.
"""

import argparse
import gc
import json
import random
import select
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tidegate.bus.installation import load_installation
from tidegate.mqtt.client import PublishAcknowledged, encode_publish
from tidegate.mqtt.fields import PACKET_ID_MAX
from tidegate_bench.rig import clients as mqtt_clients
from tidegate_bench.rig.clients import LoadClient
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.processes import allow_open_files

PAYLOAD = bytes(100)
BATCH = 64
# Messages that are due are sent together, so often: a wake-up costs as much as a message.
TICK_S = 0.0005
SEND_BUFFER_BYTES = 256 * 1024
PROBE_TIMEOUT_S = 10.0


def paced(clients: Sequence[LoadClient], seconds: float, rate_per_s: float, seed: int) -> dict[str, Any]:  # noqa: ARG001
    total, count, sent, blocked, late_s_max = round(rate_per_s * seconds), len(clients), 0, 0, 0.0
    sends = [(client, client.socket.send, client.packet, len(client.packet)) for client in clients]
    would_block = (BlockingIOError, ssl.SSLWantWriteError)
    began_s = time.monotonic()
    while sent < total:
        passed_s = time.monotonic() - began_s
        late_s_max = max(late_s_max, passed_s - sent / rate_per_s)
        for number in range(sent, min(total, int(passed_s * rate_per_s))):
            client, send, packet, size = sends[number % count]
            try:
                taken = send(packet)
            except would_block:
                taken = 0
            if taken < size:
                blocked += 1
                client.send_all(memoryview(packet)[taken:])
            sent = number + 1
        time.sleep(TICK_S)
    sending_s = time.monotonic() - began_s
    mqtt_clients.await_arrival(clients)
    return {
        "messages": sent + count,
        "sending_s": sending_s,
        "late_ms_max": late_s_max * 1e3,
        "blocked": blocked,
    }


def batched(clients: Sequence[LoadClient], seconds: float, rate_per_s: float, seed: int) -> dict[str, Any]:  # noqa: ARG001
    batches = {client: memoryview(client.packet * BATCH) for client in clients}
    rests, messages = dict.fromkeys(clients, memoryview(b"")), 0
    began_s = time.monotonic()
    for client in mqtt_clients.writable(clients, lambda: time.monotonic() - began_s >= seconds):
        rest = rests[client]
        if not rest:
            rest, messages = batches[client], messages + BATCH
        rests[client] = rest[client.socket.send(rest) :]
    for client, rest in rests.items():
        client.send_all(rest)
    mqtt_clients.await_arrival(clients)
    return {"messages": messages + len(clients), "seconds": time.monotonic() - began_s}


def probe(clients: Sequence[LoadClient], seconds: float, rate_per_s: float, seed: int) -> dict[str, Any]:
    """Timed from the send, not from when it was due: how late this process wakes up is no part of the path."""
    chance = random.Random(seed)  # noqa: S311 - seeded moments
    moments = sorted(chance.uniform(0, seconds) for _ in range(round(rate_per_s * seconds)))
    sent_s: dict[tuple[int, int], float] = {}
    took_ms: list[float] = []
    poll, began_s = select.epoll(), time.monotonic()
    by_number = {client.socket.fileno(): client for client in clients}
    for number in by_number:
        poll.register(number, select.EPOLLIN)

    def collect(timeout_s: float) -> None:
        for number, _ in poll.poll(timeout_s):
            for event in by_number[number].events():
                if isinstance(event, PublishAcknowledged):
                    took_ms.append((time.monotonic() - sent_s.pop((number, event.packet_id))) * 1e3)

    for index, moment in enumerate(moments):
        while (ahead_s := began_s + moment - time.monotonic()) > 0:
            collect(ahead_s)
        client, packet_id = clients[index % len(clients)], 1 + index // len(clients) % PACKET_ID_MAX
        packet = encode_publish(client.topic, PAYLOAD, packet_id=packet_id)
        sent_s[client.socket.fileno(), packet_id] = time.monotonic()
        client.send_all(packet)
    while sent_s and time.monotonic() - began_s < seconds + PROBE_TIMEOUT_S:
        collect(0.1)
    poll.close()
    took_ms += [PROBE_TIMEOUT_S * 1e3] * len(sent_s)
    return {"messages": len(moments), "unanswered": len(sent_s), "took_ms": [round(value, 4) for value in took_ms]}


def idle(clients: Sequence[LoadClient], *_: float) -> dict[str, Any]:
    return {"connections": len(clients)}


LOADS: dict[str, Callable[[Sequence[LoadClient], float, float, int], dict[str, Any]]] = {
    "paced": paced,
    "batched": batched,
    "probe": probe,
    "idle": idle,
}


def main() -> None:
    options = _arguments()
    allow_open_files()
    installation = load_installation(options.state)
    clients = mqtt_clients.open_clients(
        (options.host, options.port),
        options.connections,
        name=f"bench-{options.load}",
        credentials=credentials(installation),
        tls=mqtt_clients.tls_context(options.authority) if options.authority else None,
        payload=PAYLOAD,
        send_buffer_bytes=SEND_BUFFER_BYTES if options.load == "batched" else None,
    )
    gc.disable()
    _say({"connected": len(clients), "cipher": mqtt_clients.cipher_of(clients[0])})
    for _ in sys.stdin:
        _say(LOADS[options.load](clients, options.seconds, options.rate, options.seed))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.gateway.load")
    parser.add_argument("load", choices=sorted(LOADS))
    parser.add_argument("--state", type=Path, required=True, help="directory that says as whom to connect")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1.0, help="publishes per second of all connections together")
    parser.add_argument("--authority", help="certificate (PEM) to believe; without it there is no TLS")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
