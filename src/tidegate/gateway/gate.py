"""What all connections of one process share: settings, routes, advice, counters, classes, limits, and who is connected.

What the processes of a gateway have to agree on is in the memory they share; here is one process's view of it.
"""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence

from tidegate.control.limiting.credits import LEVEL_MAX
from tidegate.gateway.admitting import Admitting
from tidegate.gateway.asking import Evidence, ask
from tidegate.gateway.clients import Clients
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.machine import NO_CONNECT, Connection
from tidegate.gateway.connection.noting import Noted
from tidegate.gateway.connection.passing import TopicRules
from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.connection.terms import CreditsLeft, Terms
from tidegate.gateway.dialling_from import Sources
from tidegate.gateway.disliked import Disliked
from tidegate.gateway.expiring import ExpiringSessions
from tidegate.gateway.http_holding import HttpHolding
from tidegate.gateway.identity.judging import Identities
from tidegate.gateway.identity.verdicts import Accepted, Presented, Refused
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.member import Member
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
from tidegate.gateway.unknown import Unknown
from tidegate.machine.memory import give_back
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.observations import GatewayState, HeldClient
from tidegate.model.routes import Broker
from tidegate.mqtt.connect import Connect

# How late the event loop is for one more level of overload.
LATE_US_PER_LEVEL = 20_000
# Of all connections so many may be of clients that nobody knows yet.
UNKNOWN_SHARE = 4
# A look follows the last one within this time, unless this process has stalled.
LOOK_S_MAX = 2.0
# Connections that are looked at in one turn of the event loop.
LOOKED_AT_ONCE = 100
# So many connections less than there were are worth a look at the memory.
MEMORY_BACK_AFTER = 200
# A broker that did not know MQTT 5 is tried again after this time: it may have been replaced.
UNKNOWN_5_S = 600.0
# How long a broker may take to let go of a client that connects anew.
GIVE_WAY_S = 1.0


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
        identities: Identities,
        knows_revoked: Callable[[], bool] = lambda: True,
        own: tuple[str, str] = ("", ""),
        probe: bytes = b"",
    ) -> None:
        """``noted``: what is acknowledged is noted there, if anywhere. ``knows_revoked``: whether it is known by now
        who is revoked. ``own``: the gateway's user and password at the brokers. ``probe``: a CONNECT in its own
        name."""
        self.settings = settings
        self.noted = noted
        self.clients = Clients(settings.name, identities, knows_revoked, of_device_max=settings.device_connections_max)
        self.router = router
        self.advice = advice
        self.counters = Counters(shared.rows[slot].cells)
        self.classes = Classes(classes, self.counters)
        self.evidence = Evidence(probe, settings.broker_timeout_s)
        self.disliked = Disliked()
        self.sources = Sources(settings.source_addresses)
        self.presence = Presence(router.claim, router.release)
        buckets = (
            shared.bucket(number, rate_per_s=one.rate_per_s, burst=one.burst, name=", ".join(one.topics))
            for number, one in enumerate(settings.limits)
        )
        self.terms = Terms(
            _limits(settings),
            TopicRules(classes, [(one.topics, b) for one, b in zip(settings.limits, buckets, strict=True)]),
            self.classes,
            advice,
            self.counters,
            own_user=own[0].encode(),
            own_password=own[1].encode(),
            token=lambda: f"tidegate-{secrets.token_hex(12)}",
            noted=noted,
        )
        self.http = HttpHolding(settings, router, self.terms)
        self.http_connections = 0
        self.displace_http: Callable[[], bool] = lambda: False  # closes a silent one, if there is any
        self._admitting = Admitting(settings.admitting_max, settings.admission_s_max, self.counters)
        self._sessions = ExpiringSessions(settings.sticky_clients_max, settings.broker_timeout_s, router)
        self._class_names = [one.name for one in classes]
        self._shared = shared
        self._row = shared.rows[slot]
        self._slot = slot
        self._peers = peers
        self._devices: set[Member] = set()
        self._leaving: set[Member] = set()  # who has gone, and has publishes that still wait
        self._unknown: Unknown[Member] = Unknown(max(1, settings.connections_max // UNKNOWN_SHARE))
        self._addresses: Counter[str] = Counter()
        self._by_client: dict[bytes, Member] = {}
        self._most_connections = 0  # since memory was given back
        self._looked_s = time.monotonic()
        self._knows_5: dict[str, tuple[bool, float]] = {}

    # -- connections come and go

    def admit(self, device: Member) -> bool:
        address = device.address
        if self.is_full and not self._make_room():
            self.counters.refuse("too many connections")
            return False
        if not self._take_place(address):
            return False
        self._devices.add(device)
        self.counters.connections += 1
        displaced = self._unknown.add(device, address)
        if displaced is not None:
            displaced.perform(displaced.machine.end(NO_CONNECT))
        return True

    def _make_room(self) -> bool:
        """Whether one has to go of whom nobody knows whose it is: by HTTP or by MQTT, whichever are more."""
        if self.http_connections > len(self._unknown) and self.displace_http():
            return True
        displaced = self._unknown.displace()
        if displaced is None:
            return self.displace_http()
        displaced.perform(displaced.machine.end(NO_CONNECT))
        return True

    @property
    def is_full(self) -> bool:
        """Whether there are as many connections as may be, those by HTTP among them."""
        return len(self._devices) + len(self._leaving) + self.http_connections >= self.settings.connections_max

    def admit_http(self, address: str) -> bool:
        """A connection for readings by HTTP comes; whoever asks has seen to it that there is room."""
        if not self._take_place(address):
            return False
        self.http_connections += 1
        return True

    def leave_http(self, address: str) -> None:
        self.http_connections -= 1
        self._give_up_place(address)

    def _take_place(self, address: str) -> bool:
        """Whether an address may have one more connection, which it has then."""
        most = self.settings.address_connections_max
        if most and self._addresses[address] >= most:
            self.counters.refuse("too many of one address")
            return False
        self._addresses[address] += 1
        return True

    def _give_up_place(self, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def judged(self, device: Member, presented: Presented, found: Accepted | Refused) -> None:
        """It is known who a connection belongs to, or that it is nobody's."""
        self._unknown.discard(device)
        self.clients.judged(device, presented, found)

    # -- their turn

    def await_turn(self, device: Member, turned: Callable[[bool], None]) -> None:
        """``turned`` is called when it is this client's turn to be connected to a broker, or when it took too long."""
        self._admitting.ask(device, turned)

    def answered(self, device: Member, took_s: float, ok: bool) -> None:
        """A broker answered the client whose turn it was, or none did."""
        if ok and device.machine.broker is not None:
            self.evidence.answered(device.machine.broker)
        self._admitting.answered(device, took_s, ok)

    def gives_up(self, device: Member) -> None:
        self._admitting.left(device)

    def accepted(self, device: Member) -> None:
        """A broker took the client on: it may come back to it."""
        machine = device.machine
        connect, broker = machine.connect, machine.broker
        assert connect is not None
        assert broker is not None
        self.counters.version(machine.version_name, 1)
        if connect.version == 5:
            self.learn_5(broker, speaks=machine.translation is None)
        if connect.client_id:
            client = self.digest_of(connect)
            self.router.accepted(client, broker, connect.owner)
            self._sessions.keep(client)
            self._by_client[client] = device
        if (account := self._account(machine)) is not None:
            self.router.accepted(account, broker, connect.owner)

    def leave(self, device: Member) -> None:
        """The device's own connection has ended. What it left behind may still wait here."""
        self._admitting.left(device)
        self._unknown.discard(device)
        if device in self._devices:
            self._devices.discard(device)
            if device.machine.client is not None and device.machine.ended_for:
                self.clients.remember_end(device.machine.client.name, device.machine.ended_for, device.address)
            self._give_up_place(device.address)
            self.counters.connections -= 1
            if device.machine.is_leaving:
                self._leaving.add(device)
            else:
                self.clients.forget(device)

    def forget(self, device: Member) -> None:
        """Nothing is left of the device."""
        if device in self._leaving:
            self._leaving.discard(device)
            self.clients.forget(device)
        machine, now_s = device.machine, time.monotonic()
        connect, session, broker = machine.connect, machine.session, machine.broker
        if not machine.is_accepted or connect is None or session is None or broker is None:
            return  # no broker took it on
        self.counters.version(machine.version_name, -1)
        digest = self.digest_of(connect)
        if self._by_client.get(digest) is device:
            del self._by_client[digest]
            self.router.left(digest, session.passing.hold.credits.state(now_s), now_s)
        if (account := self._account(machine)) is not None:
            self.router.left(account, session.passing.hold.credits.state(now_s), now_s)
        deletion = machine.deletion
        if deletion is not None:
            self._sessions.expire(digest, broker, deletion.packet, after_s=deletion.after_s, left_at_s=now_s)

    # -- one client twice

    def digest_of(self, connect: ConnectSummary) -> bytes:
        """What stands for a client between the processes; nothing for one without an identifier."""
        return self.router.digest(connect.client_id) if connect.client_id else b""

    def is_elsewhere(self, known: Known | None) -> bool:
        """Whether a client that is being connected has another connection that is not gone for certain."""
        return known is not None and self._shared.slot_of(known.process) is not None

    async def make_way(self, connect: ConnectSummary) -> Known | None:
        """What is known of a client, once its old connection has ended.

        A client that is still connected, here or on another process, connects again: that one ends first. A
        broker that met both at once would hold the new one back for a second. Only a client that is the same for
        certain is taken to be the same; any other is for the broker to judge. So is everything where the broker speaks
        MQTT 5: it tells the old connection why it ends.
        """
        digest = self.digest_of(connect)
        known = self.router.known(digest)
        slot = self._shared.slot_of(known.process) if known is not None else None
        if slot is None:
            return known
        if slot == self._slot:
            await self._let_go(digest, connect.owner)
        elif self._peers is not None:
            await self._peers.ask_to_leave(slot, digest, connect.owner, 2 * GIVE_WAY_S)
        return self.router.known(digest)

    async def _let_go(self, digest: bytes, owner: bytes) -> bool:
        """Whether the client is not connected here any more."""
        await self._sessions.settled(digest)
        before = self._by_client.get(digest)
        if before is None:
            return True
        machine = before.machine
        if machine.connect is None or machine.connect.owner != owner:
            return False
        if machine.broker is not None and self.speaks_5(machine.broker):
            return False
        await before.give_way(GIVE_WAY_S)
        await self._sessions.settled(digest)  # that of the old connection may end with it
        return True

    def _account(self, machine: Connection) -> bytes | None:
        """Where the credits of a client are kept that calls itself otherwise than its name: coming again under another
        identifier refills nothing either. None where it is known by its name, and for whom only a broker knows."""
        client, connect = machine.client, machine.connect
        if client is None or connect is None or client.passes_credentials or connect.client_id == client.name:
            return None
        return self.router.digest(f"\0account {client.name}")

    def credits_left(self, machine: Connection, known: Known | None, now_s: float) -> CreditsLeft | None:
        """What the client has left: of its connection that is still here, else of its last one."""
        connect = machine.connect
        assert connect is not None
        if (account := self._account(machine)) is not None:
            kept = self.router.known(account)
            return kept.credits if kept is not None else None
        before = self._by_client.get(self.digest_of(connect)) if known is not None else None
        if before is not None:
            session, others = before.machine.session, before.machine.connect
            if session is not None and others is not None and others.owner == connect.owner:
                return session.passing.hold.credits.state(now_s)
        return known.credits if known is not None else None

    async def ask(self, broker: Broker, packet: bytes) -> int | None:
        return await ask(broker, packet, self.settings.broker_timeout_s)

    def presented(self, said: Connect, peer: Peer) -> Presented:
        """What a client shows of itself."""
        return Presented(
            user=said.user,
            password=said.password,
            client_id=said.client_id.decode(),
            address=peer.address[0],
            certificate=peer.certificate,
        )

    # -- all of them

    def start(self) -> None:
        if self._peers is not None:
            self._peers.start(self._let_go)

    async def stop(self) -> None:
        for device in (*self._by_client.values(), *self._leaving):
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
            device.abort()

    async def drain(self, drain_s: float) -> None:
        """Send everybody away, evenly over the time: devices that all come again at once are a storm."""
        devices, began_s = list(self._devices), time.monotonic()
        for number, device in enumerate(devices, start=1):
            device.perform(device.machine.dismiss())
            ahead_s = began_s + drain_s * number / len(devices) - time.monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)

    # -- what brokers speak

    def speaks_5(self, broker: Broker) -> bool | None:
        """Whether a broker speaks MQTT 5; None where nobody knows yet."""
        if broker.mqtt5 is not None:
            return broker.mqtt5
        speaks, until_s = self._knows_5.get(broker.name, (None, 0.0))
        return speaks if time.monotonic() < until_s else None

    def learn_5(self, broker: Broker, *, speaks: bool) -> None:
        self._knows_5[broker.name] = speaks, time.monotonic() + UNKNOWN_5_S

    # -- once a second

    async def look(self) -> None:
        """See to every connection, some at a time, and tell who is held."""
        # After a stall of this process nobody is silent who could not be heard meanwhile.
        now_s, held = min(time.monotonic(), self._looked_s + LOOK_S_MAX), list[HeldClient]()
        self._looked_s = time.monotonic()
        self.advice.current()  # one that has lapsed is none from now on
        self._feel()
        self.clients.look()
        for number, device in enumerate((*self._devices, *self._leaving), start=1):
            if number % LOOKED_AT_ONCE == 0:
                await asyncio.sleep(0)  # many may be ended now, and nobody else shall wait for all of that
            if todo := device.machine.look(now_s):
                device.perform(todo)
            if (one := device.machine.held(now_s)) is not None:
                held.append(one)
        held += self.http.held(now_s)
        self._give_memory_back()
        self._row.tell_held(held, Counter(one.reason for one in held))

    def _give_memory_back(self) -> None:
        """Where many have left since the last time: what they needed would else be kept for ever."""
        connections = len(self._devices) + self.http_connections
        self._most_connections = max(self._most_connections, connections)
        if self._most_connections - connections >= MEMORY_BACK_AFTER:
            self._most_connections = connections
            give_back()

    def _feel(self) -> None:
        """How overloaded this process is, by how late its event loop runs."""
        level = min(LEVEL_MAX, self.counters.cells[layout.LATE_US] // LATE_US_PER_LEVEL)
        if level != self.counters.overload:
            self.counters.overload = level
            now_s = time.monotonic()
            for device in self._devices:
                if device.machine.session is not None:
                    device.machine.session.passing.hold.credits.overload(level, now_s)

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


def _limits(settings: GatewaySettings) -> Limits:
    return Limits(
        packet_bytes_max=settings.packet_bytes_max,
        topic_bytes_max=settings.topic_bytes_max,
        properties_max=settings.properties_max,
        keep_alive_s_max=settings.keep_alive_s_max,
        connect_bytes_max=settings.connect_bytes_max,
        connect_s_max=settings.connect_timeout_s,
        broker_s_max=settings.broker_timeout_s,
        held_bytes_max=settings.held_bytes_max,
        hold_s_max=settings.hold_s_max,
        credits_max=settings.client_credits_max,
        credits_per_s=settings.client_credits_per_s,
        enforces_advice=settings.enforce_advice,
        tells_quota=settings.tell_quota_exceeded,
    )
