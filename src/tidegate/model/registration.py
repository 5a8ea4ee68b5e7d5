"""Which devices were added, what is no longer taken from whom, and how both change: pure steps.

A register has 256 shards. Nobody has to be registered: a derived password is right by itself. The register says which
generation a device has, and a revocation which generations are refused. At most two generations of a name are taken at
a time, the newest and, while a rotation has its grace, the one before it.
"""

from hashlib import blake2b

import msgspec

from tidegate.model.credentials import GENERATION_MAX, Generation
from tidegate.model.errors import UserError


class Revocation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is no longer taken from a name. It stands there a hundred thousand times: as a list of values.

    From ``from_s`` on (Unix time) derived passwords below ``generation_min`` are refused, before that those below
    ``generation_min_before``. ``everywhere``: the name is refused at once, by whichever method it is proven.
    """

    generation_min: Generation
    from_s: float
    everywhere: bool = False
    generation_min_before: Generation = 1

    def lowest(self, now_s: float) -> int:
        """The generation from which on passwords are taken."""
        return self.generation_min if now_s >= self.from_s else self.generation_min_before


class Registered(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a device that was added. It stands there a million times: as a list of values."""

    generation: Generation
    added_s: float  # Unix time
    note: str | None = None


class Entry(msgspec.Struct, frozen=True):
    """All that is kept of one name."""

    registered: Registered | None = None
    revocation: Revocation | None = None

    @property
    def generation(self) -> int:
        """The newest that was issued; a lost register is made up for by what was revoked."""
        issued = 1 if self.registered is None else self.registered.generation
        revocation = self.revocation
        if revocation is None:
            return issued
        # Nobody has been given the lowest one that is allowed while the name is refused altogether.
        return max(issued, revocation.generation_min - (1 if revocation.everywhere else 0))

    @property
    def is_revoked(self) -> bool:
        return self.revocation is not None and self.revocation.everywhere

    def added(self, now_s: float, note: str | None = None) -> "Entry":
        """Registered. A name that was revoked may come again, with a password of which nobody has a copy."""
        revocation, before = self.revocation, self.registered
        if revocation is not None and revocation.everywhere:
            lifted = msgspec.structs.replace(revocation, everywhere=False)
            return Entry(Registered(max(self.generation, lifted.generation_min), now_s, note), lifted)
        if before is not None:
            return self if note is None else Entry(msgspec.structs.replace(before, note=note), revocation)
        return Entry(Registered(self.generation, now_s, note), revocation)

    def revoked(self, now_s: float) -> "Entry":
        """Refused from now on, whoever vouches for it."""
        if self.is_revoked:
            return self
        lowest = _after(self.generation)
        return Entry(self.registered, Revocation(lowest, now_s, True, lowest))

    def rotated(self, now_s: float, grace_s: float) -> "Entry":
        """One generation on."""
        return self if self.is_revoked else self.rotated_to(_after(self.generation), now_s, grace_s)

    def rotated_to(self, generation: int, now_s: float, grace_s: float) -> "Entry":
        """At that generation; the one before it is taken for the grace, and what is older no more.

        However often it is done, it is done once, and never ends a grace later than it was promised. A name that was
        revoked meanwhile stays so.
        """
        if self.is_revoked:
            return self
        before, revocation = self.registered or Registered(generation, now_s), self.revocation
        registered = msgspec.structs.replace(before, generation=max(before.generation, generation))
        ends_s = now_s + grace_s
        if revocation is None or revocation.generation_min < generation:
            revocation = Revocation(generation, ends_s, False, generation - 1)
        elif revocation.generation_min == generation and ends_s < revocation.from_s:
            revocation = msgspec.structs.replace(revocation, from_s=ends_s)
        return Entry(registered, revocation)


def shard_of(name: str) -> str:
    """Which of the 256 parts of a register a name stands in: two hexadecimal digits."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=1).hexdigest()


def newer(there: Revocation | None, copied: Revocation) -> Revocation:
    """Of what is said and a copy that may be older or younger: the lowest generation of a name never falls."""
    return there if there is not None and there.generation_min >= copied.generation_min else copied


def _after(generation: int) -> int:
    if generation >= GENERATION_MAX:
        raise UserError(f"There is no generation behind {generation:,}: take another name for the device.")
    return generation + 1
