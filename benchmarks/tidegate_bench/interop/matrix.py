"""Every client, every behaviour, every stack: run, compared, reported."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidegate.bus.installation import load_installation
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.interop import comparison
from tidegate_bench.interop.behaviour import Observation
from tidegate_bench.interop.behaviours_of_5 import ONLY_5
from tidegate_bench.interop.behaviours_of_clients import CLIENTS
from tidegate_bench.interop.behaviours_of_messages import MESSAGES
from tidegate_bench.interop.comparison import FIVE_ON_NATS, ON_MOSQUITTO, ON_NATS, ComparisonOutcome
from tidegate_bench.interop.peer import Endpoint, InteropPeer, NotApplicableError
from tidegate_bench.interop.repeating import tallies
from tidegate_bench.interop.scene import Scene
from tidegate_bench.interop.stacks import mosquitto, nats
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.programs import installed
from tidegate_bench.rig.servers import starter

COMMON = {**MESSAGES, **CLIENTS}
AT_A_TIME = 8
PLAY_S_MAX = 90.0


class StackSide(NamedTuple):
    broker: str
    version: int
    through: bool


class Play(NamedTuple):
    side: StackSide
    client: str
    behaviour: str


class Comparison(NamedTuple):
    stack: str
    through: Play
    direct: Play

    @property
    def versions_differ(self) -> bool:
        return self.direct.side.version != self.through.side.version


PlayResult = Observation | NotApplicableError
Endpoints = Mapping[StackSide, Endpoint]

# mosquitto_sub that is told to stop asks for its will where it can: by a reason code of MQTT 5.
_IN_WORDS_OF_5 = {("mosquitto", "no will on normal end")}
# All clients are one user, as they are at a broker, who may do everything: what is compared is what passes.
APPLICATION = "interop"
IDENTITY = {"applications": [{"name": APPLICATION, "publishes": ["#"], "subscribes": ["#"]}]}
_NATS_3, _MOSQUITTO_5, _NATS_5 = ("NATS", 4), ("Mosquitto", 5), ("NATS", 5)


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    clients = load_clients()
    for name in ("mosquitto_sub", "mosquitto_pub"):
        installed(name, "mosquitto-clients")
    with contextlib.ExitStack() as opened:
        progress.step("Starting two brokers and a gateway before each.")
        state = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-interop-")))
        endpoints = open_endpoints(opened, state)
        outcomes = asyncio.run(compare(endpoints, clients, list(comparisons(clients)), progress.update))
    compared = sum(outcome.same is not None for outcome in outcomes)
    rows = [comparison.rule_row(compared), *(outcome.row() for outcome in outcomes)]
    return Report("bench interop", rows, comparison.checks(outcomes), round(time.monotonic() - started_s, 1))


def load_clients() -> dict[str, type[InteropPeer]]:
    try:
        from tidegate_bench.interop.aiomqtt_peer import AiomqttPeer  # noqa: PLC0415
        from tidegate_bench.interop.gmqtt_peer import GmqttPeer  # noqa: PLC0415
        from tidegate_bench.interop.mosquitto_peer import MosquittoPeer  # noqa: PLC0415
        from tidegate_bench.interop.paho_peer import PahoPeer  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UserError(
            f"The MQTT client {error.name} is not installed: install it with 'pip install tidegate[bench]'."
        ) from None
    return {peer.KIND: peer for peer in (PahoPeer, AiomqttPeer, GmqttPeer, MosquittoPeer)}


def open_endpoints(opened: contextlib.ExitStack, state: Path) -> dict[StackSide, Endpoint]:
    """The brokers' own endpoints, and the gateways'."""
    endpoints: dict[StackSide, Endpoint] = {}
    servers = opened.enter_context(starter(state.absolute()))
    on_nats = opened.enter_context(nats(state / "nats"))
    on_mosquitto = opened.enter_context(mosquitto(state / "mosquitto", servers, on_nats.control_urls))
    for broker, installation, versions in (("NATS", on_nats, (4, 5)), ("Mosquitto", on_mosquitto, (5,))):
        before = opened.enter_context(servers.gateway(state / broker.lower(), identity=IDENTITY))
        assert before.state is not None
        through = load_installation(before.state)
        for version in versions:
            endpoints[StackSide(broker, version, through=False)] = _endpoint(installation, version)
            endpoints[StackSide(broker, version, through=True)] = _endpoint(through, version)
    return endpoints


def _endpoint(installation: Installation, version: int) -> Endpoint:
    (host, port), (user, password) = installation.device_addresses[0], credentials(installation)(APPLICATION)
    return Endpoint(host=host, port=port, user=user, password=password, version=version)


def comparisons(clients: Iterable[str]) -> Iterable[Comparison]:
    """What has to be the same as what. MQTT 5 on NATS has no direct counterpart: it is held against MQTT 3.1.1 there,
    and what only MQTT 5 knows against Mosquitto."""

    def one(stack: str, client: str, behaviour: str, through: tuple[str, int], direct: tuple[str, int]) -> Comparison:
        return Comparison(
            stack,
            Play(StackSide(*through, through=True), client, behaviour),
            Play(StackSide(*direct, through=False), client, behaviour),
        )

    for client in clients:
        for behaviour in COMMON:
            yield one(ON_NATS, client, behaviour, _NATS_3, _NATS_3)
            yield one(ON_MOSQUITTO, client, behaviour, _MOSQUITTO_5, _MOSQUITTO_5)
            words_of_5 = (client, behaviour) in _IN_WORDS_OF_5
            yield one(FIVE_ON_NATS, client, behaviour, _NATS_5, _MOSQUITTO_5 if words_of_5 else _NATS_3)
        for behaviour in ONLY_5:
            yield one(ON_MOSQUITTO, client, behaviour, _MOSQUITTO_5, _MOSQUITTO_5)
            yield one(FIVE_ON_NATS, client, behaviour, _NATS_5, _MOSQUITTO_5)


def left_out(item: Comparison) -> str:
    """Why a comparison makes no sense, if it does not."""
    behaviour = item.through.behaviour
    if item.stack != FIVE_ON_NATS:
        return ""
    if behaviour in comparison.NOT_CARRIED:
        return "not carried by a broker of MQTT 3.1.1 (docs/mqtt5.md)"
    if behaviour in comparison.ABOUT_THE_SERVER:
        return "the gateway speaks for itself where it ends MQTT 5 (docs/mqtt5.md)"
    return ""


async def compare(
    endpoints: Endpoints,
    clients: Mapping[str, type[InteropPeer]],
    wanted: Sequence[Comparison],
    tell: Callable[[str], None],
) -> list[ComparisonOutcome]:
    """Play everything once on either side, and what differs then as often as it takes."""
    turns = asyncio.Semaphore(AT_A_TIME)

    async def play(item: Play) -> PlayResult:
        return await _play(Scene(clients[item.client], endpoints[item.side]), item.behaviour)

    async def again(item: Comparison, through: bool) -> str:
        result = await play(item.through if through else item.direct)
        assert not isinstance(result, NotApplicableError)
        return comparison.text_of(result, versions_differ=item.versions_differ)

    plays = dict.fromkeys(play for item in wanted if not left_out(item) for play in (item.direct, item.through))
    results = await _first_plays(list(plays), play, turns, tell)
    first = {item: _first_outcome(item, results) for item in wanted}
    compared = sum(outcome.same is not None for outcome in first.values())
    suspects = [item for item, outcome in first.items() if outcome.same is False]
    found = await tallies(suspects, again, behaviours=compared, turns=turns, tell=tell)
    judged = {item: comparison.judged(first[item], tally, compared) for item, tally in found.items()}
    return list((first | judged).values())


async def _first_plays(
    plays: Sequence[Play],
    play: Callable[[Play], Awaitable[PlayResult]],
    turns: asyncio.Semaphore,
    tell: Callable[[str], None],
) -> dict[Play, PlayResult]:
    done = 0

    async def first(item: Play) -> tuple[Play, PlayResult]:
        nonlocal done
        async with turns:
            result = await play(item)
        done += 1
        side = f"{item.side.broker} {'through the gateway' if item.side.through else 'directly'}"
        tell(f"{done} of {len(plays)} played: {item.client}, {item.behaviour}, {side}.")
        return item, result

    return dict(await asyncio.gather(*(first(item) for item in plays)))


def _first_outcome(item: Comparison, results: Mapping[Play, PlayResult]) -> ComparisonOutcome:
    def outcome(same: bool | None, note: str) -> ComparisonOutcome:
        client, behaviour = item.through.client, item.through.behaviour
        return ComparisonOutcome(stack=item.stack, client=client, behaviour=behaviour, same=same, note=note)

    if reason := left_out(item):
        return outcome(None, reason)
    direct, through = results[item.direct], results[item.through]
    for result in (direct, through):
        if isinstance(result, NotApplicableError):
            return outcome(None, str(result))
    assert not isinstance(direct, NotApplicableError)
    assert not isinstance(through, NotApplicableError)
    note = comparison.differ(direct, through, versions_differ=item.versions_differ)
    return outcome(not note, note)


async def _play(scene: Scene, behaviour: str) -> PlayResult:
    script = COMMON.get(behaviour) or ONLY_5[behaviour]
    try:
        async with asyncio.timeout(PLAY_S_MAX), scene:
            return await script(scene)
    except NotApplicableError as reason:
        return reason
    except TimeoutError:
        return {"ended": f"not within {PLAY_S_MAX:.0f} s"}
    except Exception as error:  # whatever a client library raises is what was observed
        return {"raised": f"{type(error).__name__}: {error}"}
