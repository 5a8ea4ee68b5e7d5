"""From CONNECT to a broker that has answered it.

A client waits for its turn, ends its own older connection if it has one, and is dialled to a broker, to the next one if
that does not answer. One that a broker hangs up on while it answers others is refused at once: it would wait for
nothing, and everybody else with it. A client that speaks MQTT 5 is tried in its own version first; a broker that does
not know it is spoken to in 3.1.1, by a translation, from then on.
"""

import asyncio
import errno
import secrets
import time
from typing import TYPE_CHECKING

from tidegate.gateway.asking import HUNG_UP, ask
from tidegate.gateway.broker_side import BrokerSide
from tidegate.gateway.connection.connect_plan import ConnectPlan, plan_connect
from tidegate.gateway.connection.opening import Opened
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.layers.layer import peer_of
from tidegate.gateway.layers.proxy import encode_header
from tidegate.gateway.shared.directory import Known
from tidegate.model.routes import Broker
from tidegate.mqtt.violations import SERVER_UNAVAILABLE, UNSPECIFIED, Violation

if TYPE_CHECKING:
    from tidegate.gateway.device_side import DeviceSide
    from tidegate.gateway.gate import Gate


# The gateway's own: they tell nothing of the broker, and the next try would meet them too.
_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


class Dialled:
    """A broker has answered: the way to it."""

    __slots__ = ("client_id", "plan", "session", "side", "translation")

    def __init__(
        self,
        client_id: str,
        side: BrokerSide,
        session: Session,
        plan: ConnectPlan | None = None,
        translation: Translation | None = None,
    ) -> None:
        self.client_id = client_id
        self.side = side
        self.session = session
        self.plan = plan
        self.translation = translation


async def dial_any(gate: "Gate", device: "DeviceSide", opened: Opened, known: Known | None) -> Dialled | None:
    """The first broker that answers; None where none does. ``known`` is what any process knows of the client."""
    tried: set[str] = set()
    began_s, hung_up = time.monotonic(), list[Broker]()
    while (broker := gate.router.take(known, tried)) is not None:
        tried.add(broker.name)
        counted = _Counted(gate, broker)
        try:
            dialled = await _dial_either(gate, device, opened, known, counted)
        finally:
            counted.settle()
        if dialled is not None:
            gate.evidence.answered(broker)
            return dialled
        if counted.hung_up:
            hung_up.append(broker)
    for broker in hung_up:
        if await gate.evidence.is_well(broker, began_s):
            raise Violation(UNSPECIFIED, "refused by the broker", "it hangs up on this client alone")
    return None


class _Counted:
    """One connection that the router counts at a broker, until the side that uses it is lost."""

    def __init__(self, gate: "Gate", broker: Broker) -> None:
        self._gate = gate
        self.broker = broker
        self.hung_up = False  # it closed instead of an answer
        self._side: BrokerSide | None = None

    def hand_over(self, side: BrokerSide) -> None:
        self._side = side
        side.lost.add_done_callback(lambda _: self._gate.router.give_back(self.broker))

    def settle(self) -> None:
        if self._side is None:
            self._gate.router.give_back(self.broker)


async def _dial_either(
    gate: "Gate", device: "DeviceSide", opened: Opened, known: Known | None, counted: _Counted
) -> Dialled | None:
    """In the version of the client, else, where it is MQTT 5 and the broker does not know that, in 3.1.1."""
    broker = counted.broker
    if opened.connect.version < 5 or gate.speaks_5(broker) is not False:
        session = gate.session(opened.connect, known)
        device.translation = None
        side = await _dial(gate, device, counted, session, opened.packet)
        if side is not None:
            counted.hand_over(side)
            return Dialled(opened.connect.client_id, side, session)
        if not session.speaks_older:
            return None
        gate.learn_5(broker, speaks=False)
    plan = plan_connect(opened.said, assigned_id=f"tidegate-{secrets.token_hex(12)}", limits=gate.limits)
    if plan.deletes_first:
        code = await ask(broker, plan.deletion, gate.settings.broker_timeout_s)
        if code is None or code == HUNG_UP:
            counted.hung_up = code == HUNG_UP
            return None
    session = gate.session(opened.connect, known, translated=True)
    device.translation = translation = Translation(plan, gate.limits, session.news)
    side = await _dial(gate, device, counted, session, plan.packet)
    if side is None:
        return None
    counted.hand_over(side)
    return Dialled(plan.client_id.decode(), side, session, plan, translation)


async def _dial(
    gate: "Gate", device: "DeviceSide", counted: _Counted, session: Session, packet: bytes
) -> BrokerSide | None:
    """The connection, if the broker answered, be it with a refusal. Until then nothing but CONNECT was sent to it."""
    broker = counted.broker
    side = BrokerSide(device, broker, session)
    answered = False
    try:
        async with asyncio.timeout(gate.settings.broker_timeout_s):
            await asyncio.get_running_loop().create_connection(lambda: side, broker.host, broker.port)
            if broker.proxy_protocol and device.transport is not None:
                side.write(encode_header(peer_of(device.transport), device.transport.get_extra_info("sockname")[:2]))
            side.write(packet)
            answered = await side.answered
            counted.hung_up = side.lost.done() and not answered
    except TimeoutError:
        pass
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise Violation(SERVER_UNAVAILABLE, "no file or port left") from None
    finally:
        if not answered and side.transport is not None:
            side.transport.abort()
    return side if answered else None
