"""A node's name is its own: before one starts, no other may live by it."""

import time

from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.model.installation import Installation
from tidegate.pipeline.keeper import LAPSE_S, Say
from tidegate.pipeline.settings import NodeSettings


def await_name(installation: Installation, settings: NodeSettings, say: Say) -> None:
    """A predecessor's lease ends by itself; one that does not belongs to a node that runs, unless it is damaged."""
    name, deadline = settings.name, time.monotonic() + settings.lease_s + LAPSE_S
    with Bus(installation.control_urls, name=f"{name}-start") as bus:
        while name in bus.names(NODE_LEASES):
            if time.monotonic() > deadline:
                if (damage := _damage(bus, name)) is None:
                    raise UserError(f"A node named {name} is running already: stop it, or choose another --name.")
                say(f"{damage} Nobody has written it anew: no node of that name runs, and this one starts.")
                return
            time.sleep(0.1)


def _damage(bus: Bus, name: str) -> str | None:
    try:
        bus.get(NODE_LEASES, name)
    except DamagedDocumentError as error:
        return str(error)
    return None
