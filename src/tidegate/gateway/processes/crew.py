"""The processes of a gateway and what all of them are given: memory, mailboxes, and doors that stay open."""

import itertools
import os
import signal
from collections.abc import Sequence

from tidegate.gateway.processes.listening_sockets import open_doors
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

    def __init__(self, installation: Installation, settings: GatewaySettings, classes: Sequence[DeviceClass]) -> None:
        self.processes: list[Process] = []
        self._installation = installation
        self._settings = settings
        self._classes = tuple(classes)
        self._doors = open_doors(settings)
        self.addresses = [one.address for one in self._doors[0]]
        slots = 2 * settings.processes  # an upgrade has twice as many for a while
        self.shared = Shared.create(
            processes=slots, buckets=len(settings.limits), clients_max=settings.sticky_clients_max
        )
        self._mailboxes = [Mailbox.open() for _ in range(slots)]
        self._numbers = itertools.count(1)

    def start(self, door: int) -> Process:
        number = next(self._numbers)
        used = {process.slot for process in self.processes}
        slot = next(slot for slot in range(len(self.shared.rows)) if slot not in used)
        self.shared.begin(slot, process=number)
        doors = tuple(tuple(one.sock.fileno() for one in each) for each in self._doors)
        mailboxes = tuple(MailboxFds(each.reading.fileno(), each.writing.fileno()) for each in self._mailboxes)
        order = Order(
            supervisor_pid=os.getpid(),
            installation=self._installation,
            settings=self._settings,
            classes=self._classes,
            slot=slot,
            door=door,
            memory=self.shared.fd,
            mailboxes=mailboxes,
            listeners=tuple(one.listener for one in self._doors[0]),
            doors=doors,
        )
        fds = {
            self.shared.fd,
            *itertools.chain(*doors),
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

    def is_kept(self, door: int) -> bool:
        return any(self.is_ready(one) for one in self.processes if one.door == door and not one.leaves)

    def tell_unattended(self) -> None:
        for door in range(len(self._doors)):
            self.shared.unattended[door] = not self.is_kept(door)

    def close_doors(self) -> None:
        for one in itertools.chain(*self._doors):
            one.sock.close()

    def close(self) -> None:
        self.close_doors()
        for mailbox in self._mailboxes:
            mailbox.close()
