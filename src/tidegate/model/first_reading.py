"""All it takes to send a first reading to an installation that has just been started."""

import msgspec

FIRST_DEVICE = "hello"  # nobody has to add it: derived passwords of generation 1 count for every name


class FirstReading(msgspec.Struct, frozen=True, kw_only=True):
    """It holds a password: it is shown to operators, and is no part of a view, which programs may read."""

    device: str
    password: str
    mqtt: tuple[str, int]
    http: tuple[str, int] | None

    def __repr__(self) -> str:
        return f"FirstReading(device={self.device!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("device", self.device)]
