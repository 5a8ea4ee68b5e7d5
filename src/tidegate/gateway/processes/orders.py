"""What a supervisor tells a process that it starts: on its standard input, because passwords are in it."""

import msgspec

from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.settings import GatewaySettings
from tidegate.gateway.shared.peers import MailboxFds
from tidegate.model.classes import DeviceClass
from tidegate.model.installation import Installation


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Files are named by their numbers, which a process inherits."""

    supervisor_pid: int
    installation: Installation
    settings: GatewaySettings
    classes: tuple[DeviceClass, ...]
    identity: IdentitySettings
    strict: bool  # it ends where a file of identities is damaged; otherwise it serves those who do not need it
    slot: int  # its row in the shared memory
    listener_set: int  # the one it keeps
    memory: int
    mailboxes: tuple[MailboxFds, ...]  # of each slot
    listeners: tuple[Listener, ...]
    listener_sets: tuple[tuple[int, ...], ...]  # of each set the listening sockets, in the listeners' order
