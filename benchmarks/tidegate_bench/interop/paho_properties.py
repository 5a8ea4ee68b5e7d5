"""MQTT 5 properties as paho (and aiomqtt, which is built on it) writes them."""

from typing import Any

from paho.mqtt import properties as paho
from paho.mqtt.packettypes import PacketTypes

from tidegate_bench.interop.peer import Extras, Heard, Options

Properties: Any = paho.Properties  # which has no types

_PUBLISH = {
    "content_type": "ContentType",
    "response_topic": "ResponseTopic",
    "expiry_s": "MessageExpiryInterval",
    "alias": "TopicAlias",
}


def publish_properties(extras: Extras, prefix: str) -> Any:
    properties = Properties(PacketTypes.PUBLISH)
    for ours, theirs in _PUBLISH.items():
        if (value := getattr(extras, ours)) is not None:
            setattr(properties, theirs, prefix + value if ours == "response_topic" else value)
    if extras.correlation is not None:
        properties.CorrelationData = extras.correlation.encode()
    if extras.user:
        properties.UserProperty = list(extras.user)
    return None if properties.isEmpty() else properties


def connect_properties(options: Options) -> Any:
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = options.session_s
    return properties


def subscribe_properties(identifier: int | None) -> Any:
    if identifier is None:
        return None
    properties = Properties(PacketTypes.SUBSCRIBE)
    properties.SubscriptionIdentifier = identifier
    return properties


def will_properties(options: Options) -> Any:
    if options.will is None or not options.will.delay_s:
        return None
    properties = Properties(PacketTypes.WILLMESSAGE)
    properties.WillDelayInterval = options.will.delay_s
    return properties


def heard(message: Any, prefix: str) -> Heard:
    """A paho or aiomqtt message."""
    return Heard(
        topic=str(message.topic),
        payload=bytes(message.payload),
        qos=message.qos,
        retain=bool(message.retain),
        duplicate=bool(getattr(message, "dup", None)) if hasattr(message, "dup") else None,
        extras=_extras(getattr(message, "properties", None), prefix),
    )


def _extras(properties: Any, prefix: str) -> Extras:
    said = vars(properties) if properties is not None else {}
    correlation = said.get("CorrelationData")
    response_topic = said.get("ResponseTopic")
    return Extras(
        user=tuple(tuple(pair) for pair in said.get("UserProperty", ())),
        content_type=said.get("ContentType"),
        response_topic=response_topic.removeprefix(prefix) if response_topic is not None else None,
        correlation=correlation.decode() if correlation is not None else None,
        expiry_s=said.get("MessageExpiryInterval"),
        identifiers=tuple(said.get("SubscriptionIdentifier", ())),
    )


def announced(properties: Any) -> dict[str, Any]:
    """What CONNACK announces, by the names of the specification."""
    if properties is None:
        return {}
    return {name: value for name, value in properties.json().items() if name not in ("UserProperty", "ReasonString")}
