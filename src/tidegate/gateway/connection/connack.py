"""The CONNACK of a broker, as a device of MQTT 5 is told it: with what the gateway allows, where that is less."""

import msgspec

from tidegate.gateway.connection.connect_plan import Limits
from tidegate.mqtt import packets, properties


def capped(answer: packets.Connack, limits: Limits, asked_keep_alive_s: int, assigned_id: bytes) -> packets.Connack:
    """``asked_keep_alive_s`` is the device's wish; ``assigned_id`` the identifier that it was given here, if it was."""
    values = dict(answer.properties.values)
    most_s = limits.keep_alive_s_max
    said_s = answer.properties.number(properties.SERVER_KEEP_ALIVE, asked_keep_alive_s)
    if most_s < 65_535 and not 0 < said_s <= most_s:
        values[properties.SERVER_KEEP_ALIVE] = most_s
    largest = answer.properties.number(properties.PACKET_BYTES_MAX, properties.PACKET_BYTES_MAX_UNSAID)
    values[properties.PACKET_BYTES_MAX] = min(largest, limits.packet_bytes_max)
    if assigned_id:
        values[properties.ASSIGNED_CLIENT_ID] = assigned_id
    if values == answer.properties.values:
        return answer
    told = msgspec.structs.replace(answer.properties, values=values)
    return msgspec.structs.replace(answer, properties=told)
