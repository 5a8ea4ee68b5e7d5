"""Readings by HTTP that may not pass yet: they wait here, in order, for as long as a request may.

What a request pays is what a publish pays: its device's credits and turns (``http_credits.py``), then a token of every
limit on its topic. Requests of one device stand in one line, and only the first of a line asks: nobody else waits
because of it. Whose turn cannot come in time is told at once which limit it met, and when to come again.

Somebody who speaks for several devices pays for all of them from credits of its own as well.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

import msgspec

from tidegate.control.limiting.credits import BURST, cost_of
from tidegate.control.limiting.token_bucket import TokenBucket
from tidegate.gateway.connection.advising import place_of
from tidegate.gateway.connection.terms import Terms
from tidegate.gateway.http_credits import HttpCredits, Met
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.observations import HeldClient

LINE_MAX = 8  # requests of one device that wait
CLIENT_SHARE = 4  # of all requests that may wait, those of one client are at most this part
LOOK_S = 0.25  # what is enforced may change while the first of a line waits
_SPEAKS = "\0speaks"  # no device is called so


class _Request(msgspec.Struct, frozen=True):
    client: str
    device: str
    topic: bytes
    packet_bytes: int


class _Due(msgspec.Struct, frozen=True):
    """What one request has to pay: who, how many credits, at which rate, and a token of each bucket."""

    accounts: tuple[tuple[str, float | None], ...]
    cost: float
    buckets: Sequence[TokenBucket]


class _Line:
    """Of one device. The lock is fair: whoever came first has its turn first."""

    def __init__(self, met: Met) -> None:
        self.turn = asyncio.Lock()
        self.met = met  # what keeps the first of it
        self.since_s: list[float] = []
        self.waiting_bytes = 0


class HttpHolding:
    """Of one process."""

    def __init__(self, settings: GatewaySettings, router: Router, terms: Terms) -> None:
        limits = terms.limits
        self._terms = terms
        self._wait_s_max = min(settings.http_timeout_s, limits.hold_s_max)
        self._requests_max = settings.http_requests_max
        self._credits = HttpCredits(
            router.account, most=limits.credits_max, per_s=limits.credits_per_s, level=lambda: terms.counters.overload
        )
        self._lines: dict[str, _Line] = {}
        self._waiting = 0
        self._by_client: Counter[str] = Counter()

    async def pass_on(self, client: str, device: str, topic: bytes, packet_bytes: int) -> Met | None:
        """Return when the reading may go on, or what it met where its turn does not come in time. ``client`` is who
        sends it, ``packet_bytes`` what it has as a publish."""
        if self._terms.rules.never_waits(topic):
            return None
        request, line = _Request(client, device, topic, packet_bytes), self._lines.get(device)
        met = self._passes(self._due(request), time.monotonic()) if line is None else line.met
        if met is None:
            return None
        if met.until_s > self._wait_s_max or not self._has_room(request, line):
            return met
        if line is None:
            line = self._lines[device] = _Line(met)
        return await self._wait(request, line)

    def held(self, now_s: float) -> list[HeldClient]:
        """Whom an operator sees."""
        return [
            HeldClient(
                client_id=device,
                reason=line.met.limit,
                publishes=len(line.since_s),
                waiting_s=round(now_s - line.since_s[0], 3),
            )
            for device, line in self._lines.items()
        ]

    def _due(self, request: _Request) -> _Due:
        terms, device = self._terms, request.device
        of_class = terms.classes.of(request.topic).name
        enforces = terms.limits.enforces_advice and of_class not in terms.rules.unpaced
        rate_per_s = terms.advice.rate_of(of_class, place_of(device.encode())) if enforces else None
        accounts: list[tuple[str, float | None]] = [(device, rate_per_s)]
        if request.client != device:
            accounts.append((f"{request.client}{_SPEAKS}", None))
        return _Due(tuple(accounts), cost_of(request.packet_bytes), terms.rules.buckets(request.topic))

    # -- paying

    def _passes(self, due: _Due, now_s: float) -> Met | None:
        """All at once. What does not pass takes nothing from anybody."""
        met = self._pay(due, now_s)
        if met is not None:
            return met
        for place, bucket in enumerate(due.buckets):
            if not bucket.take(1, now_s):
                for taken in due.buckets[:place]:
                    taken.give_back(1)
                self._give_back(due, now_s)
                return _met_bucket(bucket, bucket.wait_s(1, now_s))
        return None

    def _pay(self, due: _Due, now_s: float, *, strict: bool = False) -> Met | None:
        for place, (name, rate_per_s) in enumerate(due.accounts):
            met = self._credits.take(name, due.cost, rate_per_s, now_s, strict=strict)
            if met is not None:
                self._give_back(msgspec.structs.replace(due, accounts=due.accounts[:place]), now_s)
                return met
        return None

    def _give_back(self, due: _Due, now_s: float) -> None:
        for name, rate_per_s in due.accounts:
            self._credits.give_back(name, due.cost, rate_per_s, now_s)

    # -- waiting

    def _has_room(self, request: _Request, line: _Line | None) -> bool:
        here = self._by_client[request.client]
        if self._waiting >= self._requests_max or here >= max(1, self._requests_max // CLIENT_SHARE):
            return False
        if line is None:
            return True
        fits = line.waiting_bytes + request.packet_bytes <= self._terms.limits.held_bytes_max
        return fits and len(line.since_s) < LINE_MAX

    async def _wait(self, request: _Request, line: _Line) -> Met | None:
        began_s = time.monotonic()
        line.since_s.append(began_s)
        self._count(request, line, 1)
        self._terms.counters.held_total += 1
        try:
            async with asyncio.timeout(self._wait_s_max), line.turn:
                return await self._be_first(request, line, began_s + self._wait_s_max)
        except TimeoutError:
            return line.met
        finally:
            line.since_s.remove(began_s)
            self._count(request, line, -1)
            if not line.since_s:
                del self._lines[request.device]

    def _count(self, request: _Request, line: _Line, change: int) -> None:
        self._waiting += change
        self._terms.counters.held += change
        line.waiting_bytes += change * request.packet_bytes
        self._by_client[request.client] += change
        if not self._by_client[request.client]:
            del self._by_client[request.client]

    async def _be_first(self, request: _Request, line: _Line, ends_s: float) -> Met | None:
        """Who does not follow advice has more than a burst that waits, and is kept to its rate without tolerance."""
        while True:
            now_s, due = time.monotonic(), self._due(request)
            met = self._pay(due, now_s, strict=len(line.since_s) > BURST)
            if met is None:
                return await self._reserve(line, due, ends_s) if due.buckets else None
            line.met = met
            if now_s + met.until_s > ends_s:
                return met
            await asyncio.sleep(min(met.until_s, LOOK_S))

    async def _reserve(self, line: _Line, due: _Due, ends_s: float) -> Met | None:
        """A place among all who publish on these topics, and the wait for it."""
        now_s, passes = time.monotonic(), False
        granted_s, bucket = max(((one.reserve(1, now_s), one) for one in due.buckets), key=lambda place: place[0])
        try:
            if granted_s > now_s:
                line.met = _met_bucket(bucket, granted_s - now_s)
                if granted_s > ends_s:
                    return line.met
                await asyncio.sleep(granted_s - now_s)
            passes = True
            return None
        finally:
            if not passes:
                for one in due.buckets:
                    one.give_back(1)
                self._give_back(due, time.monotonic())


def _met_bucket(bucket: TokenBucket, until_s: float) -> Met:
    """Who waits for the tokens of others as well finds none left."""
    return Met(f"the topics {bucket.name}", bucket.rate_per_s, max(0.0, 1.0 - until_s * bucket.rate_per_s), until_s)
