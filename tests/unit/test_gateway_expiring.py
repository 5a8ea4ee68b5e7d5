"""Sessions that wait to be deleted: no more of them than fit, and none while its client is being connected."""

import asyncio

import pytest

from tidegate.gateway import expiring
from tidegate.gateway.expiring import ExpiringSessions
from tidegate.model.routes import Broker

NOWHERE = Broker(name="b", host="127.0.0.1", port=1)


class Absences:
    def __init__(self, *, absent: bool = True) -> None:
        self.absent = absent
        self.claimed: list[bytes] = []

    def claim_absent(self, client: bytes, since_s: float) -> bool:
        if self.absent:
            self.claimed.append(client)
        return self.absent

    def release_absent(self, client: bytes) -> None:
        self.claimed.remove(client)


@pytest.mark.parametrize(("packet_bytes", "kept"), [(10, 50), (100_000, 10)])
def test_what_waits_is_bounded_in_number_and_in_bytes(
    packet_bytes: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiring, "BYTES_MAX", 1_000_000)

    async def scenario() -> int:
        sessions = ExpiringSessions(50, 1.0, Absences())
        for number in range(200):
            sessions.expire(b"%d" % number, NOWHERE, bytes(packet_bytes), after_s=60.0, left_at_s=0.0)
        count = len(sessions)
        sessions.stop()
        assert len(sessions) == 0
        return count

    assert asyncio.run(scenario()) == kept


def test_a_client_that_comes_back_waits_until_its_session_is_deleted() -> None:
    async def scenario() -> tuple[list[bytes], list[bytes]]:
        absences = Absences()
        sessions = ExpiringSessions(50, 1.0, absences)
        sessions.expire(b"c", NOWHERE, b"", after_s=0.0, left_at_s=0.0)
        during = list(absences.claimed)
        await sessions.settled(b"c")
        return during, absences.claimed

    assert asyncio.run(scenario()) == ([b"c"], [])


def test_the_session_of_a_client_that_is_back_is_left_alone() -> None:
    async def scenario() -> list[bytes]:
        absences = Absences(absent=False)
        sessions = ExpiringSessions(50, 1.0, absences)
        sessions.expire(b"c", NOWHERE, b"", after_s=0.0, left_at_s=0.0)
        await sessions.settled(b"c")
        return absences.claimed

    assert asyncio.run(scenario()) == []
