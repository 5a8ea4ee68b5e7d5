"""What all connections of one process share: settings, routes, advice, counters, classes, limits, and who is connected.

What the processes of a gateway have to agree on is in the memory they share; here is one process's view of it.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from tidegate.control.limiting.credits import LEVEL_MAX, ClientCredits
from tidegate.gateway.admitting import Admitting
from tidegate.gateway.asking import Evidence
from tidegate.gateway.connection.advising import AdviceInForce, place_of
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.noting import Noted, Noting
from tidegate.gateway.connection.opening import ConnectSummary
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import Session
from tidegate.gateway.device_side import GIVE_WAY_S, NO_CONNECT, DeviceSide
from tidegate.gateway.dialling import Dialled
from tidegate.gateway.expiring import ExpiringSessions
from tidegate.gateway.presence import Presence
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.directory import Known
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.peers import Peers
from tidegate.gateway.shared.summing import state_of
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.observations import GatewayState, HeldClient
from tidegate.model.routes import Broker

# How late the event loop is for one more level of overload.
LATE_US_PER_LEVEL = 20_000
# Of all connections so many may be silent: a client says CONNECT at once, so the oldest silent one is none.
UNKNOWN_SHARE = 4
# A broker that did not know MQTT 5 is tried again after this time: it may have been replaced.
UNKNOWN_5_S = 600.0
_VERSION_NAMES = {3: "3.1", 4: "3.1.1", 5: "5"}


class Gate:
    def __init__(
        self,
        settings: GatewaySettings,
        router: Router,
        advice: AdviceInForce,
        classes: Sequence[DeviceClass] = DEFAULT_CLASSES,
        *,
        shared: Shared,
        slot: int = 0,
        peers: Peers | None = None,
        noted: Noted | None = None,
        probe: bytes = b"",
    ) -> None:
        """``noted``: what is acknowledged is noted there, if anywhere. ``probe``: a CONNECT in its own name."""
        self.settings = settings
        self.noted = noted
        self.router = router
        self.advice = advice
        self.counters = Counters(shared.rows[slot].cells)
        self.classes = Classes(classes, self.counters)
        self.evidence = Evidence(probe, settings.broker_timeout_s)
        self.presence = Presence(router.claim, router.release)
        self.limits = Limits(
            packet_bytes_max=settings.packet_bytes_max,
            topic_bytes_max=settings.topic_bytes_max,
            properties_max=settings.properties_max,
            keep_alive_s_max=settings.keep_alive_s_max,
        )
        buckets = (
            shared.bucket(number, rate_per_s=one.rate_per_s, burst=one.burst, name=", ".join(one.topics))
            for number, one in enumerate(settings.limits)
        )
        self._rules = TopicRules(classes, [(one.topics, b) for one, b in zip(settings.limits, buckets, strict=True)])
        self._admitting = Admitting(settings.admitting_max, settings.admission_s_max, self.counters)
        self._sessions = ExpiringSessions(settings.sticky_clients_max, settings.broker_timeout_s, router)
        self._class_names = [one.name for one in classes]
        self._shared = shared
        self._row = shared.rows[slot]
        self._slot = slot
        self._peers = peers
        self._devices: set[DeviceSide] = set()
        self._leaving: set[DeviceSide] = set()  # who has gone, and has publishes that still wait
        self._unknown: dict[DeviceSide, None] = {}  # who has not said CONNECT yet, the oldest first
        self._by_client: dict[bytes, DeviceSide] = {}
        self._knows_5: dict[str, tuple[bool, float]] = {}

    # -- connections come and go

    def admit(self, device: DeviceSide) -> bool:
        if len(self._devices) + len(self._leaving) >= self.settings.connections_max:
            self.counters.refuse("too many connections")
            return False
        self._devices.add(device)
        self.counters.connections += 1
        self._unknown[device] = None
        if len(self._unknown) > max(1, self.settings.connections_max // UNKNOWN_SHARE):
            next(iter(self._unknown)).end(NO_CONNECT)
        return True

    def opened(self, device: DeviceSide) -> None:
        """It has said who it is."""
        self._unknown.pop(device, None)

    async def turn(self, device: DeviceSide) -> bool:
        """Wait until it is this client's turn to be connected to a broker; False where it took too long."""
        return await self._admitting.turn(device)

    def answered(self, device: DeviceSide, took_s: float, ok: bool) -> None:
        """A broker answered the client whose turn it was, or none did."""
        self._admitting.answered(device, took_s, ok)

    def gives_up(self, device: DeviceSide) -> None:
        self._admitting.left(device)

    def accepted(self, device: DeviceSide, dialled: Dialled) -> None:
        """A broker took the client on: it may come back to it."""
        assert device.connect is not None
        self.counters.version(_version_name(device.connect, dialled), 1)
        self.router.accepted(dialled.client_id, dialled.side.broker, device.connect.credentials)
        if device.connect.version == 5:
            self.learn_5(dialled.side.broker, speaks=dialled.translation is None)
        if dialled.client_id:
            client = self.router.digest(dialled.client_id)
            self._sessions.keep(client)
            self._by_client[client] = device

    def leave(self, device: DeviceSide) -> None:
        """The device's own connection has ended. What it left behind may still wait here."""
        self._admitting.left(device)
        self._unknown.pop(device, None)
        if device in self._devices:
            self._devices.discard(device)
            self.counters.connections -= 1
            if device.is_finishing:
                self._leaving.add(device)

    def forget(self, device: DeviceSide, dialled: Dialled) -> None:
        """Nothing is left of the device."""
        self._leaving.discard(device)
        if device.waiting is None or device.connect is None:
            return  # no broker took it on
        self.counters.version(_version_name(device.connect, dialled), -1)
        client_id, now_s = dialled.client_id, time.monotonic()
        digest = self.router.digest(client_id)
        if self._by_client.get(digest) is device:
            del self._by_client[digest]
            self.router.left(client_id, dialled.session.passing.hold.credits.state(now_s), now_s)
        translation, plan = dialled.translation, dialled.plan
        if translation is not None and plan is not None and translation.delete_session_after_s is not None:
            self._sessions.expire(
                digest,
                dialled.side.broker,
                plan.deletion,
                after_s=translation.delete_session_after_s,
                left_at_s=now_s,
            )

    async def make_way(self, connect: ConnectSummary) -> Known | None:
        """What is known of a client, once its old connection has ended.

        A client that is still connected, here or on another process, connects again: that one ends first. A
        broker that met both at once would hold the new one back for a second. Only a client with the same
        credentials is taken to be the same; any other is for the broker to judge. So is everything where the broker
        speaks MQTT 5: it tells the old connection why it ends.
        """
        known = self.router.known(connect.client_id)
        slot = self._shared.slot_of(known.process) if known is not None else None
        if slot is None:
            return known
        digest = self.router.digest(connect.client_id)
        if slot == self._slot:
            await self._let_go(digest, connect.credentials)
        elif self._peers is not None:
            await self._peers.ask_to_leave(slot, digest, connect.credentials, 2 * GIVE_WAY_S)
        return self.router.known(connect.client_id)

    async def _let_go(self, digest: bytes, credentials: bytes) -> bool:
        """Whether the client is not connected here any more."""
        await self._sessions.settled(digest)
        before = self._by_client.get(digest)
        if before is None:
            return True
        if before.connect is None or before.connect.credentials != credentials:
            return False
        if before.side is not None and self.speaks_5(before.side.broker):
            return False
        await before.give_way()
        await self._sessions.settled(digest)  # that of the old connection may end with it
        return True

    def start(self) -> None:
        if self._peers is not None:
            self._peers.start(self._let_go)

    async def stop(self) -> None:
        for device in tuple(self._by_client.values()):
            device.release_broker()
        self._sessions.stop()
        self.evidence.stop()
        if self._peers is not None:
            await self._peers.stop()

    def close_all(self) -> None:
        for device in tuple(self._devices):
            device.close()

    def abort_all(self) -> None:
        for device in tuple(self._devices):
            if device.transport is not None:
                device.transport.abort()

    async def drain(self, drain_s: float) -> None:
        """Send everybody away, evenly over the time: devices that all come again at once are a storm."""
        devices, began_s = list(self._devices), time.monotonic()
        for number, device in enumerate(devices, start=1):
            device.dismiss()
            ahead_s = began_s + drain_s * number / len(devices) - time.monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)

    # -- what a connection needs

    def session(self, connect: ConnectSummary, known: Known | None, *, translated: bool = False) -> Session:
        now_s, settings = time.monotonic(), self.settings
        credits_now = ClientCredits(
            settings.client_credits_max,
            settings.client_credits_per_s,
            now_s,
            self._credits_left(connect, known, now_s),
            self.counters.overload,
        )
        version = 4 if translated else connect.version
        # Those without a name are others every time.
        place = place_of(connect.client_id.encode()) if connect.client_id else random.random()  # noqa: S311
        passing = Passing(
            Hold(
                credits_now,
                bytes_max=settings.held_bytes_max,
                hold_s_max=settings.hold_s_max,
                keep_alive_s=connect.keep_alive_s,
            ),
            self._rules,
            self.classes,
            self.advice,
            self.counters,
            enforces=settings.enforce_advice,
            version=version,
            tells_quota=settings.tell_quota_exceeded and connect.version == 5,
            place=place,
        )
        takes_news = connect.version == 5 and connect.wants_problems
        # Behind a translation a packet may be longer than it came: the topic stands where an alias did.
        longer = settings.topic_bytes_max if translated else 0
        limits = msgspec.structs.replace(self.limits, packet_bytes_max=settings.packet_bytes_max + longer)
        news_bytes_max = connect.packet_bytes_max if takes_news else 0
        return Session(
            version,
            limits,
            self.advice,
            passing,
            keep_alive_s=connect.keep_alive_s,
            news_bytes_max=news_bytes_max,
            packet_bytes_max=connect.packet_bytes_max,
            noting=Noting(self.noted, version) if self.noted is not None else None,
            place=place,
        )

    def _credits_left(
        self, connect: ConnectSummary, known: Known | None, now_s: float
    ) -> tuple[float, float, float] | None:
        """What the client has left: of its connection that is still here, else of its last one."""
        before = self._by_client.get(self.router.digest(connect.client_id)) if known is not None else None
        if before is not None and before.dialled is not None and before.says_the_same(connect):
            return before.dialled.session.passing.hold.credits.state(now_s)
        return known.credits if known is not None else None

    def keep_alive_of(self, connect: ConnectSummary, session: Session) -> float:
        """How long the device may be silent, as far as anybody said; one that names no time gets the longest."""
        said_s = connect.keep_alive_s if session.keep_alive_s is None else session.keep_alive_s
        return float(min(said_s or self.settings.keep_alive_s_max, self.settings.keep_alive_s_max))

    def speaks_5(self, broker: Broker) -> bool | None:
        """Whether a broker speaks MQTT 5; None where nobody knows yet."""
        if broker.mqtt5 is not None:
            return broker.mqtt5
        speaks, until_s = self._knows_5.get(broker.name, (None, 0.0))
        return speaks if time.monotonic() < until_s else None

    def learn_5(self, broker: Broker, *, speaks: bool) -> None:
        self._knows_5[broker.name] = speaks, time.monotonic() + UNKNOWN_5_S

    # -- once a second

    def look(self) -> None:
        """See to every connection, and tell who is held."""
        now_s, held = time.monotonic(), list[HeldClient]()
        self.advice.current()  # one that has lapsed is none from now on
        self._feel()
        for device in tuple(self._devices):
            device.look(now_s)
            if (one := device.held(now_s)) is not None:
                held.append(one)
        held += [one for device in self._leaving if (one := device.held(now_s)) is not None]
        self._row.tell_held(held, Counter(one.reason for one in held))

    def _feel(self) -> None:
        """How overloaded this process is, by how late its event loop runs."""
        level = min(LEVEL_MAX, self.counters.cells[layout.LATE_US] // LATE_US_PER_LEVEL)
        if level != self.counters.overload:
            self.counters.overload = level
            now_s = time.monotonic()
            for device in self._devices:
                if device.dialled is not None:
                    device.dialled.session.passing.hold.credits.overload(level, now_s)

    def tell(self) -> None:
        """What this process counted, for all to see. Called many times a second."""
        self.counters.tell()
        self.presence.look(self.counters.tally.now_s)
        self.classes.tell()
        if self.noted is not None:
            self.counters.tell_noted(self.noted.noted, self.noted.nameless)

    def state(self, address: str) -> GatewayState:
        self.tell()
        return state_of(
            self._shared,
            name=self.settings.name,
            address=address,
            measured_at_s=time.time(),
            class_names=self._class_names,
        )


def _version_name(connect: ConnectSummary, dialled: Dialled) -> str:
    return _VERSION_NAMES[connect.version] if dialled.translation is None else "5 on 3.1.1"
