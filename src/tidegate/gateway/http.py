"""HTTP ingest: one reading per request, for devices that do not speak MQTT.

``204 No Content`` means that a broker has acknowledged the reading; any other answer says why not.
"""

import asyncio
import hmac

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.requests import ClientDisconnect

from tidegate.gateway.connection.advising import place_of
from tidegate.gateway.gate import Gate
from tidegate.gateway.ingest import Ingest
from tidegate.model.devices import check_device
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.readings import PAYLOAD_BYTES_MAX, TELEMETRY, Reading

_DECODER = msgspec.json.Decoder(Reading)


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def build_app(ingest: Ingest, gate: Gate, token: str) -> FastAPI:
    app = FastAPI(title="Tidegate ingest", docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(_RefusedError)
    async def refuse(_: Request, refused: _RefusedError) -> Response:
        gate.counters.refuse(f"HTTP {refused.status}")
        headers = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else None
        return PlainTextResponse(f"{refused}\n", refused.status, headers)

    @app.post("/v1/telemetry/{device}")
    async def receive(device: str, request: Request) -> Response:
        _check_token(request, token)
        try:
            check_device(device)
        except UserError as error:
            raise _RefusedError(400, str(error)) from None
        payload = await _body(request, ingest.timeout_s)
        _check_reading(payload)
        gate.counters.bytes_in += len(payload)
        topic = f"{TELEMETRY}/{device}".encode()
        of_class = gate.classes.of(topic)
        gate.presence.came(device, of_class, gate.counters.tally.now_s)
        try:
            await ingest.publish(topic, payload, of_class)
        except BrokerUnavailableError as error:
            raise _RefusedError(503, str(error)) from None
        return Response(status_code=204, headers=_advice_headers(gate, of_class.name, place_of(device.encode())))

    return app


def _check_token(request: Request, token: str) -> None:
    given = request.headers.get("Authorization", "").encode()
    if not token or not hmac.compare_digest(given, f"Bearer {token}".encode()):
        raise _RefusedError(401, "The token is missing or wrong: send 'Authorization: Bearer <token>'.")


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
    if problem is not None:
        raise _RefusedError(400, f"The body is not a reading: {problem.rstrip('.')}.")


def _advice_headers(gate: Gate, device_class: str | None, place: float) -> dict[str, str]:
    """A client that comes by HTTP need not know its class: it is told the interval of its topic's."""
    current = gate.advice.current(place)
    if current is None:
        return {}
    gate.counters.advised += 1
    interval_s = current.interval_of(device_class)
    said = {"Interval": interval_s, "Lifetime": current.lifetime_s, "Half-Life": current.half_life_s}
    return {f"Tidegate-{name}-S": f"{value:g}" for name, value in said.items()}
