"""The processes of a gateway and what all of them are given: memory, mailboxes, and listeners that stay open."""

import itertools
import os
import signal
from collections.abc import Sequence

from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.listening import first_address
from tidegate.gateway.processes.listening_sockets import open_listener_sets
from tidegate.gateway.processes.orders import Order
from tidegate.gateway.processes.process import Process
from tidegate.gateway.settings import GatewaySettings
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.peers import Mailbox, MailboxFds
from tidegate.model.classes import DeviceClass
from tidegate.model.installation import Installation


class Crew:
    """``processes`` are those that were started and are not known to be gone."""

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        classes: Sequence[DeviceClass],
        identity: IdentitySettings,
    ) -> None:
        self.processes: list[Process] = []
        self._installation = installation
        self._settings = settings
        self._classes = tuple(classes)
        self._identity = identity
        self._listener_sets = open_listener_sets(settings)
        self.mqtt_address = first_address(self._listener_sets[0], "mqtt", "websocket")
        self.http_address = first_address(self._listener_sets[0], "http")
        slots = 2 * settings.processes  # an upgrade has twice as many for a while
        self.shared = Shared.create(
            processes=slots, buckets=len(settings.limits), clients_max=settings.sticky_clients_max
        )
        self._mailboxes = [Mailbox.open() for _ in range(slots)]
        self._numbers = itertools.count(1)

    def start(self, listener_set: int, *, strict: bool) -> Process:
        """``strict``: rather none than one that cannot use a file of identities."""
        number = next(self._numbers)
        used = {process.slot for process in self.processes}
        slot = next(slot for slot in range(len(self.shared.rows)) if slot not in used)
        self.shared.begin(slot, process=number)
        fd_sets = tuple(tuple(one.sock.fileno() for one in each) for each in self._listener_sets)
        mailboxes = tuple(MailboxFds(each.reading.fileno(), each.writing.fileno()) for each in self._mailboxes)
        order = Order(
            supervisor_pid=os.getpid(),
            installation=self._installation,
            settings=self._settings,
            classes=self._classes,
            identity=self._identity,
            strict=strict,
            slot=slot,
            listener_set=listener_set,
            memory=self.shared.fd,
            mailboxes=mailboxes,
            listeners=tuple(one.listener for one in self._listener_sets[0]),
            listener_sets=fd_sets,
        )
        fds = {
            self.shared.fd,
            *itertools.chain(*fd_sets),
            *(fd for each in mailboxes for fd in (each.reading, each.writing)),
        }
        process = Process(order, number, sorted(fds))
        self.processes.append(process)
        return process

    def send_away(self, process: Process) -> None:
        """Let it send its clients away and end; one that has none yet may end at once."""
        process.leaves = True
        process.tell(signal.SIGUSR1 if self.is_ready(process) else signal.SIGTERM)

    def bury(self, process: Process) -> None:
        """It is gone: what it counted is kept."""
        self.processes.remove(process)
        self.shared.fold(process.slot)

    def is_ready(self, process: Process) -> bool:
        return process in self.processes and bool(self.shared.rows[process.slot].cells[layout.READY])

    def is_kept(self, listener_set: int) -> bool:
        staying = (one for one in self.processes if one.listener_set == listener_set and not one.leaves)
        return any(self.is_ready(one) for one in staying)

    def tell_unattended(self) -> None:
        for number in range(len(self._listener_sets)):
            self.shared.unattended[number] = not self.is_kept(number)

    def close_listeners(self) -> None:
        for one in itertools.chain(*self._listener_sets):
            one.sock.close()

    def close(self) -> None:
        self.close_listeners()
        for mailbox in self._mailboxes:
            mailbox.close()
