"""What one gateway has done since it started. Counters only grow."""

import msgspec


class Counters(msgspec.Struct):
    publishes: int = 0
    acknowledged: int = 0
    advised: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: dict[str, int] = {}

    def refuse(self, reason: str) -> None:
        self.refused[reason] = self.refused.get(reason, 0) + 1
