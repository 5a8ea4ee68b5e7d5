"""One connection, as those see it who have to do with all of them."""

from typing import Protocol

from tidegate.gateway.connection.instructions import Instruction
from tidegate.gateway.connection.machine import Connection


class Member(Protocol):
    """Its machine, and somebody to do what that wants."""

    machine: Connection
    address: str  # the host that it comes from

    def perform(self, todo: list[Instruction]) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def release_broker(self) -> None: ...
    async def give_way(self, within_s: float) -> None: ...
