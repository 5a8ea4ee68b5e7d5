"""Clients that a broker has just hung up on: they are refused at once for a while, and no broker is asked.

A client that tries again in a loop would else cost a broker, and everybody who waits for one, as much each time. The
pause doubles with each refusal in a row, up to ``PAUSE_S_MAX``; who is quiet for that long begins anew. The memory is
short: of more clients than fit, the oldest are forgotten.
"""

from collections import OrderedDict

PAUSE_S_MIN, PAUSE_S_MAX = 1.0, 30.0
CLIENTS_MAX = 4_096


class Disliked:
    """By what stands for a client; a client without a name is nobody's."""

    def __init__(self, clients_max: int = CLIENTS_MAX) -> None:
        self._clients_max = clients_max
        self._pauses: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # until when, and how long it was

    def add(self, client: bytes, now_s: float) -> None:
        """A broker hung up on it, and answers others."""
        until_s, before_s = self._pauses.pop(client, (0.0, 0.0))
        is_again = before_s > 0.0 and now_s < until_s + PAUSE_S_MAX
        pause_s = min(PAUSE_S_MAX, 2 * before_s) if is_again else PAUSE_S_MIN
        self._pauses[client] = now_s + pause_s, pause_s
        if len(self._pauses) > self._clients_max:
            self._pauses.popitem(last=False)

    def has(self, client: bytes, now_s: float) -> bool:
        """Whether no broker is asked for it now."""
        return now_s < self._pauses.get(client, (0.0, 0.0))[0]
