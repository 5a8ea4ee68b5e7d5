"""Who the clients of one process are: judged when they come, again when something changes, and known by their names."""

import time
from collections.abc import Callable, Collection

from tidegate.gateway.identity.judging import Identities
from tidegate.gateway.identity.verdicts import KEYS_NOT_KNOWN, TOO_MANY, Accepted, Presented, Refused
from tidegate.gateway.member import Member
from tidegate.model.clients import ClientAnswer, Ended

# Names whose last end is remembered, and how much of a name that nobody has proven.
ENDS_REMEMBERED, NAME_LENGTH_MAX = 1_024, 256


class Clients:
    """``knows_revoked``: whether it is known by now who is revoked. ``of_device_max``: connections that one device may
    have here."""

    def __init__(
        self, gateway: str, identities: Identities, knows_revoked: Callable[[], bool], *, of_device_max: int
    ) -> None:
        self.identities = identities
        self.knows_revoked = knows_revoked
        self._gateway = gateway
        self._of_device_max = of_device_max
        self._by_name: dict[str, set[Member]] = {}  # who is judged, and not gone
        self._expiring: dict[Member, float] = {}  # whose proof ends some time (Unix time)
        self._ended: dict[str, Ended] = {}  # by name, the oldest first

    # -- when they come

    def judge(self, presented: Presented, *, stays: bool = True) -> Accepted | Refused | None:
        """None where that takes time: then ``judge_slowly``. ``stays``: it wants a connection, not one request."""
        found = self.identities.judge(presented, time.time())
        return None if found is None else self._guarded(found, stays=stays)

    async def judge_slowly(self, presented: Presented, *, stays: bool = True) -> Accepted | Refused:
        return self._guarded(await self.identities.judge_slowly(presented), stays=stays)

    def _guarded(self, found: Accepted | Refused, *, stays: bool) -> Accepted | Refused:
        """Nobody is let in while it is not known who is revoked, nor somebody who has more than its share of
        connections here already."""
        if isinstance(found, Refused) or found.passes_credentials:
            return found
        if not self.knows_revoked():
            return KEYS_NOT_KNOWN
        here = len(self._by_name.get(found.name, ()))
        return TOO_MANY if stays and not found.is_application and here >= self._of_device_max else found

    def judged(self, device: Member, presented: Presented, found: Accepted | Refused) -> None:
        """It is known who a connection belongs to, or that it is nobody's."""
        if isinstance(found, Refused):
            if presented.name:
                self.remember_end(presented.name, found.reason, device.address)
            return
        self._by_name.setdefault(found.name, set()).add(device)
        if found.expires_s is not None:
            self._expiring[device] = found.expires_s

    def forget(self, device: Member) -> None:
        """It is gone, and so is what waited of it."""
        self._expiring.pop(device, None)
        client = device.machine.client
        here = self._by_name.get(client.name) if client is not None else None
        if client is not None and here is not None:
            here.discard(device)
            if not here:
                del self._by_name[client.name]

    # -- when something changes

    def is_here(self, name: str) -> bool:
        return name in self._by_name

    def judge_again(self, names: Collection[str] | None) -> None:
        """Something has changed about these, or about everybody."""
        known = self._by_name if names is None else {name for name in names if name in self._by_name}
        for device in [device for name in known for device in self._by_name[name]]:
            self._judge_again(device)

    def look(self) -> None:
        """Once a second: whose proof has ended is judged again."""
        now_s = time.time()
        for device in [device for device, expires_s in self._expiring.items() if expires_s <= now_s]:
            del self._expiring[device]
            self._judge_again(device)

    def _judge_again(self, device: Member) -> None:
        machine = device.machine
        if machine.client is not None:
            found = self.identities.still_allowed(machine.client, time.time())
            device.perform(machine.judged_again(found, time.monotonic()))

    # -- what can be said of them

    def answer_about(self, name: str) -> ClientAnswer | None:
        """None where nothing can be said."""
        now_s, ended = time.monotonic(), self._ended.get(name[:NAME_LENGTH_MAX])
        found = (device.machine.state(self._gateway, device.address, now_s) for device in self._by_name.get(name, ()))
        connections = tuple(one for one in found if one is not None)
        if not connections and ended is None:
            return None
        return ClientAnswer(gateway=self._gateway, connections=connections, ended=ended)

    def remember_end(self, name: str, reason: str, address: str) -> None:
        """Names that somebody only says are among them: so it is a short memory."""
        name = name[:NAME_LENGTH_MAX]
        self._ended.pop(name, None)
        self._ended[name] = Ended(reason=reason, at_s=time.time(), address=address)
        if len(self._ended) > ENDS_REMEMBERED:
            del self._ended[next(iter(self._ended))]
