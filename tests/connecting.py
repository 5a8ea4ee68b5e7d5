"""What connections of a test go by."""

from typing import Any

import msgspec

from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.passing import TopicRules
from tidegate.gateway.connection.terms import Terms
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.classes import DEFAULT_CLASSES

LIMITS = Limits(packet_bytes_max=10_000, topic_bytes_max=200, properties_max=8, keep_alive_s_max=600)


def terms(**limits: Any) -> Terms:
    counters = Counters()
    return Terms(
        msgspec.structs.replace(LIMITS, **limits),
        TopicRules(DEFAULT_CLASSES),
        Classes(DEFAULT_CLASSES, counters),
        AdviceInForce(lambda: 0.0),
        counters,
        own_user=b"gateway",
        own_password=b"own-word",
        token=lambda: "given",
    )
