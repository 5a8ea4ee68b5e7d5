"""How the first reading comes to an installation to which nothing has come yet."""

from tidegate.model.first_reading import FirstReading
from tidegate.model.view import View
from tidegate.report.pasting import http_line, reading_line


def nothing_has_arrived(view: View) -> bool:
    """Whether no reading ever came, as far as anybody can say: what is not known is taken for some."""
    chain, now = view.chain, view.now
    if now is None or now.waiting or now.arrival_per_s or not chain.gateways:
        return False
    counts = (
        *(gateway.publishes for gateway in chain.gateways),
        *(one.stored for one in chain.slices),
        *(node.rows for node in chain.nodes),
    )
    return all(count == 0 for count in counts)


def mqtt_line(first: FirstReading) -> str:
    return reading_line(first.mqtt, first.device, first.password, first.device)


def lines(first: FirstReading) -> list[tuple[str, str]]:
    """Each with what it is: by MQTT, and by HTTP where there is a listener for it."""
    by_mqtt = (f"By MQTT, as the device {first.device}", mqtt_line(first))
    if first.http is None:
        return [by_mqtt]
    return [by_mqtt, ("By HTTP", http_line(first.http, first.device, first.password, first.device))]
