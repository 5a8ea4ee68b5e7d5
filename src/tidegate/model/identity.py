"""Who may publish and subscribe to what: patterns with a client's own name in them, for devices and for applications.

A pattern is an MQTT filter in which the level ``{device}`` stands for the name of the client itself. What no pattern
allows is refused.
"""

from typing import Annotated, Literal

import msgspec

from tidegate.model.advice import ADVICE_TOPIC
from tidegate.model.devices import check_device
from tidegate.model.errors import UserError

OWN_NAME = "{device}"
EVERY = "*"  # at the end of a name in ``speaks_for``: every device whose name begins like that
PATTERN_BYTES_MAX = 4_096
SPEAKS_FOR_MAX = 100_000
APPLICATIONS_MAX = 1_000

# How a client can prove who it is.
MethodName = Literal["derived", "file", "certificate", "jwt", "http", "broker"]
# Of the words in which gateways count refusals, those about who a client is and what it may do.
IDENTITY_REFUSALS = (
    "no known credentials",
    "wrong credentials",
    "expired credentials",
    "revoked",
    "no valid client certificate",
    "not by this method",
    "not a device name",
    "keys not known yet",
    "identity service away",
    "too many checks at once",
    "too many of one client",
    "forged advice",
    "not its own topic",
    "not for it to hear",
)
Filters = Annotated[tuple[str, ...], msgspec.Meta(max_length=64)]


class Patterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every device may do. Advice is no part of it: any client may read its own, and none may publish it."""

    publishes: Filters = ("telemetry/{device}", "telemetry/{device}/#")
    subscribes: Filters = ("downlink/{device}", "downlink/{device}/#")

    def __post_init__(self) -> None:
        _check_patterns(self.publishes, self.subscribes, "devices")


class Application(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A named user that is no device: analytics, a bridge, an edge gateway.

    ``speaks_for`` names devices, or what their names begin with (``pump-*``): it may do what each of those devices may.
    Nobody becomes an application by a method that ``methods`` does not name.
    """

    name: str
    publishes: Filters = ()
    subscribes: Filters = ()
    speaks_for: Annotated[tuple[str, ...], msgspec.Meta(max_length=SPEAKS_FOR_MAX)] = ()
    methods: Annotated[tuple[MethodName, ...], msgspec.Meta(min_length=1)] = ("derived", "file")

    def __post_init__(self) -> None:
        check_device(self.name)
        whose = f"application {self.name}"
        _check_patterns(self.publishes, self.subscribes, whose)
        for number, name in enumerate(self.speaks_for):
            if name != EVERY:
                _check_spoken_for(name, whose, f"speaks_for[{number}]")


class Access(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of it: what devices may, and who else there is."""

    devices: Patterns = msgspec.field(default_factory=Patterns)
    applications: tuple[Application, ...] = ()

    def __post_init__(self) -> None:
        check_applications(self.applications)


class AppliedAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator has applied in place of the settings, and when."""

    access: Access
    name: str  # what the file is called
    applied_at_s: float  # Unix time


def check_applications(applications: tuple[Application, ...]) -> None:
    """A name stands for one of them, and there is an end to them."""
    if len(applications) > APPLICATIONS_MAX:
        raise UserError(
            f"There are {len(applications):,} applications: have at most {APPLICATIONS_MAX:,}.", where="applications"
        )
    names: set[str] = set()
    for number, application in enumerate(applications):
        if application.name in names:
            raise UserError(
                f"Two applications are called {application.name}: rename one of them, or make them one.",
                where=f"applications[{number}].name",
            )
        names.add(application.name)


def _check_patterns(publishes: tuple[str, ...], subscribes: tuple[str, ...], whose: str) -> None:
    for field, patterns in (("publishes", publishes), ("subscribes", subscribes)):
        for number, pattern in enumerate(patterns):
            problem = _problem(pattern)
            if problem:
                raise UserError(
                    f"The pattern {pattern!r:.80} in {field} of {whose} cannot be used: {problem}.",
                    where=f"{field}[{number}]",
                )


def _problem(pattern: str) -> str:
    """What is wrong with it and how it has to be; nothing where all is well."""
    levels = pattern.split("/")
    size_bytes = len(pattern.encode(errors="replace"))
    is_broken = any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
    is_glued = any(OWN_NAME in level and level != OWN_NAME for level in levels)
    found = (
        (not 1 <= size_bytes <= PATTERN_BYTES_MAX or "\0" in pattern, "give it 1 to 4,096 bytes without NUL"),
        ("#" in levels[:-1], "let # be its last level"),
        (is_broken, "let + and # be whole levels"),
        (is_glued, f"let {OWN_NAME} be a whole level"),
        (pattern.startswith("$"), "topics that begin with $ are the broker's own, leave it out"),
        (pattern == ADVICE_TOPIC, "the gateway itself gives advice to every client that asks for it, leave it out"),
    )
    return next((words for is_wrong, words in found if is_wrong), "")


def _check_spoken_for(name: str, whose: str, where: str) -> None:
    try:
        check_device(name.removesuffix(EVERY))
    except UserError as error:
        raise UserError(f"In speaks_for of {whose}: {error}", where=where) from None
