"""What was said of whom, for a while, and of no more than so many: the oldest answers make room."""

from collections import OrderedDict
from typing import Generic, TypeVar

Said = TypeVar("Said")


class Memory(Generic[Said]):
    """Times are Unix time, and the caller's."""

    def __init__(self, answers_max: int) -> None:
        self._answers_max = answers_max
        self._answers: OrderedDict[bytes, tuple[float, Said]] = OrderedDict()

    def has(self, digest: bytes, now_s: float) -> bool:
        found = self._answers.get(digest)
        return found is not None and now_s < found[0]

    def __getitem__(self, digest: bytes) -> Said:
        return self._answers[digest][1]

    def keep(self, digest: bytes, answer: Said, now_s: float, until_s: float) -> None:
        if until_s <= now_s:
            return
        self._answers[digest] = until_s, answer
        self._answers.move_to_end(digest)
        if len(self._answers) > self._answers_max:
            self._answers.popitem(last=False)
