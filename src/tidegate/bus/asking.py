"""What is known of one device: what the bus keeps of it, and what gateways answer who are asked about it."""

import msgspec

from tidegate.bus import register
from tidegate.bus.client import Bus
from tidegate.model.clients import CLIENTS_SUBJECT, ClientAnswer, DeviceReport

ANSWERS_S = 0.5  # that gateways have to say what they know


def device_report(bus: Bus, name: str) -> DeviceReport:
    """It takes as long as gateways have to answer: nobody knows how many of them will."""
    entry = register.entries(bus, [name])[name]
    said = bus.answers(CLIENTS_SUBJECT, name.encode(), ANSWERS_S)
    answers = tuple(msgspec.json.decode(one, type=ClientAnswer) for one in said)
    return DeviceReport(name=name, entry=entry, answers=answers)
