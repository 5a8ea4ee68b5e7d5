"""HTTP ingest: one reading per request, for devices that do not speak MQTT.

``204 No Content`` means that a broker has acknowledged the reading; any other answer says why not. A request passes
what a publish passes: who sends it is judged, for which device it may, and its credits and limits count.
"""

import asyncio
import math
import time
from collections.abc import Mapping

import msgspec
from fastapi import FastAPI, Request, Response
from starlette.requests import ClientDisconnect

from tidegate.gateway.connection.advising import place_of
from tidegate.gateway.gate import Gate
from tidegate.gateway.http_credentials import CHALLENGE, ONLY_THE_BROKER_KNOWS, presented, status_of
from tidegate.gateway.identity.verdicts import SERVICE_AWAY, Accepted, Refused
from tidegate.gateway.ingest import Ingest, packet_bytes
from tidegate.model.devices import check_device
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.limits import LimitMet
from tidegate.model.readings import PAYLOAD_BYTES_MAX, TELEMETRY, Reading

RETRY_S = 1
_UNSENDABLE = frozenset(" \x7f" + "".join(map(chr, range(32))))  # what no topic of a reading by HTTP may have
_DECODER = msgspec.json.Decoder(Reading)


class _RefusedError(Exception):
    """``reason`` is counted; without one, the status is."""

    def __init__(self, status: int, sentence: str, reason: str = "") -> None:
        super().__init__(sentence)
        self.status, self.reason = status, reason or f"HTTP {status}"

    def answer(self) -> Response:
        headers = {401: {"WWW-Authenticate": CHALLENGE}, 503: {"Retry-After": f"{RETRY_S}"}}.get(self.status)
        return Response(f"{self}\n", self.status, headers, "text/plain")


class _LimitedError(_RefusedError):
    """``met`` says which limit, how much of it is left, and in how many seconds to come again."""

    def __init__(self, met: LimitMet) -> None:
        super().__init__(429, met.sentence(), "quota exceeded")
        self._met = met

    def answer(self) -> Response:
        met = self._met
        said = {"rate_per_s": met.rate_per_s or 0.0, "left": met.left, "until_s": met.until_s}
        figures = {name: round(value, 3) for name, value in said.items()}
        headers = {f"Tidegate-{name.replace('_', '-').title()}": f"{value:g}" for name, value in figures.items()}
        headers["Tidegate-Limit"] = met.limit.encode("ascii", "replace").decode()  # an operator's topics are any text
        headers["Retry-After"] = f"{max(1, math.ceil(met.until_s))}"
        return Response(msgspec.json.encode({"limit": met.limit, **figures}), self.status, headers, "application/json")


def build_app(ingest: Ingest, gate: Gate) -> FastAPI:
    app = FastAPI(title="Tidegate ingest", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(_RefusedError)
    async def refuse(_: Request, refused: _RefusedError) -> Response:
        gate.counters.refuse(refused.reason)
        return refused.answer()

    @app.post("/v1/telemetry/{device}")
    async def receive(device: str, request: Request) -> Response:
        client = await _judge(gate, request, device, ingest.timeout_s)
        topic = _topic(device)
        _check_rights(client, topic)
        payload = await _body(request, ingest.timeout_s)
        _check_reading(payload)
        gate.counters.bytes_in += len(payload)
        of_class = gate.classes.of(topic)
        gate.presence.came(device, of_class, gate.counters.tally.now_s)
        met = await gate.http.pass_on(client.name, device, topic, packet_bytes(topic, payload))
        if met is not None:
            raise _LimitedError(met)
        _check_rights(_still_allowed(gate, client), topic)
        try:
            await ingest.publish(topic, payload, of_class)
        except BrokerUnavailableError as error:
            raise _RefusedError(503, str(error)) from None
        return Response(status_code=204, headers=_advice_headers(gate, of_class.name, place_of(device.encode())))

    return app


# -- who sends it


async def _judge(gate: Gate, request: Request, device: str, timeout_s: float) -> Accepted:
    shown = presented(request.headers.get("Authorization", ""), device, request.state.peer)
    found = gate.clients.judge(shown, stays=False)
    if found is None:
        try:
            async with asyncio.timeout(timeout_s):
                found = await gate.clients.judge_slowly(shown, stays=False)
        except TimeoutError:
            found = SERVICE_AWAY
    if isinstance(found, Accepted) and found.passes_credentials:
        found = ONLY_THE_BROKER_KNOWS
    if isinstance(found, Refused) and shown.name:
        gate.clients.remember_end(shown.name, found.reason, shown.address)
    return _accepted(found)


def _still_allowed(gate: Gate, client: Accepted) -> Accepted:
    """The body had time to come, and the reading to wait: meanwhile somebody may have been thrown out."""
    return _accepted(gate.clients.identities.still_allowed(client, time.time()))


def _accepted(found: Accepted | Refused) -> Accepted:
    if isinstance(found, Refused):
        raise _RefusedError(status_of(found), found.sentence, found.reason)
    return found


def _topic(device: str) -> bytes:
    try:
        check_device(device)
    except UserError as error:
        raise _RefusedError(400, str(error)) from None
    if not _UNSENDABLE.isdisjoint(device):
        # A broker may hang up on such a topic, and with it on everybody who comes by HTTP.
        raise _RefusedError(400, "The device's name has a space or a control character: it can only send by MQTT.")
    return f"{TELEMETRY}/{device}".encode()


def _check_rights(client: Accepted, topic: bytes) -> None:
    if not client.rights.may_publish(topic):
        sentence = "This client may not send for the device in the address: put its own name there."
        raise _RefusedError(403, sentence, "not its own topic")


# -- what it sends


async def _body(request: Request, timeout_s: float) -> bytes:
    """The body, as far as a reading may be long; the rest of a longer one is not even read."""
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            async for part in request.stream():
                body += part
                if len(body) > PAYLOAD_BYTES_MAX:
                    raise _RefusedError(413, f"The reading is too large: at most {PAYLOAD_BYTES_MAX:,} bytes.")
    except TimeoutError:
        raise _RefusedError(408, f"The reading did not come within {timeout_s:g} s.") from None
    except ClientDisconnect:
        raise _RefusedError(400, "The reading was cut off.") from None
    return bytes(body)


def _check_reading(payload: bytes) -> None:
    try:
        problem = _DECODER.decode(payload).contradiction()
    except msgspec.DecodeError as error:
        problem = str(error)
    except RecursionError:
        problem = "it is nested too deeply"
    if problem is not None:
        raise _RefusedError(400, f"The body is not a reading: {problem.rstrip('.')}.")


# -- what it is told


def _advice_headers(gate: Gate, device_class: str | None, place: float) -> Mapping[str, str]:
    """A client that comes by HTTP need not know its class: it is told the interval of its topic's."""
    current = gate.advice.current(place)
    if current is None:
        return {}
    gate.counters.advised += 1
    interval_s = current.interval_of(device_class)
    said = {"Interval": interval_s, "Lifetime": current.lifetime_s, "Half-Life": current.half_life_s}
    return {f"Tidegate-{name}-S": f"{value:g}" for name, value in said.items()}
