"""The HTTP API: view, decisions, mode and what is known of one device as JSON, and metrics. Errors are one sentence."""

import time
from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

from tidegate.model.decisions import ModeWord
from tidegate.model.device_words import described_fully
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.view import state_of
from tidegate.web.metrics.exposition import CONTENT_TYPE, exposition
from tidegate.web.values.source import source_of

DECISIONS_DEFAULT = 20

router = APIRouter()


class ModeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first two are wanted: half a mode would silently keep the other half of somebody else's. What is said of the
    other policies stays as it is unless it is named."""

    send_rate: ModeWord
    frozen: bool
    nodes: ModeWord | None = None
    slices: ModeWord | None = None
    routes: ModeWord | None = None
    cohort_share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None

    @property
    def changes(self) -> dict[str, object]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class Stretch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    from_s: float
    to_s: float


@router.get("/api/view")
async def view(request: Request) -> Response:
    shown = source_of(request).view()
    return _json({"state": state_of(shown.samples, shown.mode), **msgspec.structs.asdict(shown)})


@router.get("/api/decisions")
async def decisions(request: Request) -> Response:
    text = request.query_params.get("last", str(DECISIONS_DEFAULT))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        return _bad(f"last={text[:20]} is not a number of decisions: give a whole number from 1 on.")
    return _json(source_of(request).view().decisions[-int(text) :])


@router.get("/api/devices/{name}")
async def device(name: str, request: Request) -> Response:
    """Nobody has to be registered, so that there is an answer for every name that a device may have."""
    try:
        report = await source_of(request).look_up(name)
    except UserError as error:
        return _bad(str(error))
    except TidegateError as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    return _json(described_fully(report, time.time()))


@router.put("/api/mode")
async def set_mode(request: Request) -> Response:
    try:
        wanted = msgspec.json.decode(await request.body(), type=ModeRequest)
    except msgspec.DecodeError as error:
        return _bad(
            f'The mode is not understood ({error}): send {{"send_rate": "acting", "cohort", "shadow" or "off", '
            '"frozen": true or false}.'
        )
    return _json(await source_of(request).set_mode(wanted.changes))


@router.put("/api/past")
async def set_past(request: Request) -> Response:
    """Keep a stretch of time as the run to compare with; charts draw it in grey from now on."""
    try:
        stretch = msgspec.json.decode(await request.body(), type=Stretch)
    except msgspec.DecodeError as error:
        return _bad(f'The stretch is not understood ({error}): send {{"from_s": Unix time, "to_s": Unix time}}.')
    if not source_of(request).remember(stretch.from_s, stretch.to_s, time.time()):
        return _bad("Nothing was measured in that stretch: name two moments of the last minutes as Unix times.")
    return _json(stretch)


@router.get("/metrics")
async def prometheus(request: Request) -> Response:
    return Response(exposition(source_of(request).view(), time.time()), media_type=CONTENT_TYPE)


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json", headers={"cache-control": "no-store"})


def _bad(sentence: str) -> Response:
    return PlainTextResponse(sentence + "\n", status_code=400)
