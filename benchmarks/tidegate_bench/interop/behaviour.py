"""What every behaviour is made of. Each is a script that returns what was observed.

An observation is a dictionary of plain values. Times never appear in it, only what came before or after what. A
message that ends a script is published like those before it, so that nothing can overtake.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tidegate_bench.interop.peer import Heard
from tidegate_bench.interop.scene import Scene

Observation = dict[str, Any]
Behaviour = Callable[[Scene], Awaitable[Observation]]

END = b"end"
# Long enough for a broker to do what it does after a client has gone, where nothing can be waited for.
SETTLE_S = 0.5


def seen(messages: list[Heard]) -> list[dict[str, Any]]:
    return [message.seen() for message in messages]


def in_any_order(messages: list[Heard]) -> list[dict[str, Any]]:
    return sorted(seen(messages), key=repr)
