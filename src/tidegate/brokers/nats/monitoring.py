"""The brokers' health, from their monitoring pages. A page that does not answer is an answer."""

import http
import http.client
import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from tidegate.model.observations import BrokerState

TIMEOUT_S = 1.0


def read_brokers(addresses: Sequence[tuple[str, int]], monitor_urls: Sequence[str]) -> tuple[BrokerState, ...]:
    """Each broker, in this order. Takes up to a timeout per broker that hangs: not for a busy thread."""
    pages = zip(addresses, monitor_urls, strict=True)
    return tuple(
        _read(f"broker-{number}", f"{host}:{port}", monitor) for number, ((host, port), monitor) in enumerate(pages, 1)
    )


def _read(name: str, address: str, monitor_url: str) -> BrokerState:
    parts = urlsplit(monitor_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/healthz?js-server-only=true")
        answer = connection.getresponse()
        health = json.loads(answer.read())
        connection.request("GET", "/varz")
        connections = int(json.loads(connection.getresponse().read())["connections"])
    except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
        problem = f"its monitoring page does not answer ({error or type(error).__name__})."
        return BrokerState(name=name, address=address, healthy=False, problem=problem)
    finally:
        connection.close()
    if answer.status == http.HTTPStatus.OK:
        return BrokerState(name=name, address=address, healthy=True, connections=connections)
    problem = f"it reports itself unhealthy ({health.get('error', health.get('status', answer.status))})."
    return BrokerState(name=name, address=address, healthy=False, connections=connections, problem=problem)
