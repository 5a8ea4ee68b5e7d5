"""What every method can do, and the two that need no more than a few lines.

A method that does not know a client says None, and the next one is asked. One that knows it decides: nobody is asked
behind it.
"""

from typing import Protocol

from tidegate.gateway.identity.files import UNCHANGED, Reread
from tidegate.gateway.identity.verdicts import KEYS_NOT_KNOWN, WRONG, Known, Later, Presented, Refused
from tidegate.model.credentials import Keys, is_derived, verify

Answer = Known | Refused | Later | None


class Method(Protocol):
    @property
    def is_off(self) -> bool:
        """Whether it cannot even tell who its clients are: its file was never readable."""

    def find(self, presented: Presented, now_s: float) -> Answer:
        """Who that is. ``now_s`` is Unix time."""

    def still_knows(self, name: str) -> bool:
        """Whether somebody whom it has let in would still be known by that name."""

    def look(self) -> Reread:
        """Read again what has changed on disk."""

    async def close(self) -> None:
        """End what is under way."""


class Plain:
    """A method that reads no files and waits for nobody."""

    is_off = False

    def still_knows(self, _name: str) -> bool:
        return True

    def look(self) -> Reread:
        return UNCHANGED

    async def close(self) -> None:
        return


class Derived(Plain):
    """Passwords that a key of the installation derives. Without a key nobody is let in."""

    def __init__(self) -> None:
        self.keys: Keys | None = None

    def find(self, presented: Presented, _now_s: float) -> Answer:
        password, name = presented.password, presented.name
        if password is None or not is_derived(password):
            return None
        if self.keys is None:
            return KEYS_NOT_KNOWN
        proof = None if name is None else verify(self.keys, name, password)
        return WRONG if name is None or proof is None else Known(name=name, proof=proof)


class PassedOn(Plain):
    """The broker decides. Without a user name nobody vouches for a name in a topic, unless the broker decides about
    topics as well."""

    def __init__(self, *, decides_topics: bool) -> None:
        self._decides_topics = decides_topics

    def find(self, presented: Presented, _now_s: float) -> Answer:
        name = presented.name if self._decides_topics else presented.user_name
        return Known(name=name or "") if name or self._decides_topics else WRONG
