"""The catalogue: every document on the control bus, with its key, its type, who writes it and who reads it.

A document is JSON. Nobody builds a key or parses a value by hand: what is put on the bus and what is read from it goes
through an entry of this catalogue. Documents that exist once per node, gateway or job stand under ``<key>.<name>``.

Who writes and reads is said in terms of the parts: ``controller`` (``leader`` where only the leading one does),
``gateway``, ``node``, ``maintainer``, ``up`` (whoever starts the parts of a machine), ``operator`` (a person, by a
command or the dashboard) and ``job`` (somebody else's reader of the slices).
"""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

import msgspec

from tidegate.control.slicing.transfer import Assignment
from tidegate.loop.rounds import Round
from tidegate.loop.rules import AppliedRules
from tidegate.loop.state import LoopState
from tidegate.model.advice import Advice
from tidegate.model.credentials import Keys
from tidegate.model.decisions import Applied, Apply, Decision, Mode
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.model.gaps import Gaps
from tidegate.model.identity import AppliedAccess
from tidegate.model.ledger import CompletenessState, LedgerReport
from tidegate.model.notices import Notice
from tidegate.model.observations import GatewayState
from tidegate.model.progress import NodeProgress
from tidegate.model.registration import Registered, Revocation
from tidegate.model.routes import Routes
from tidegate.model.scaling import Scale
from tidegate.model.tables import TablesState

T = TypeVar("T")
# What a decoder may raise over arbitrary bytes: no JSON, no UTF-8, too deep, values that contradict each other.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UserError)


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lease. Two runs of one name differ in their incarnation."""

    name: str
    incarnation: str


@dataclass(frozen=True)
class Document(Generic[T]):
    """One kind of document. ``per`` says what its members are named after, where there are several."""

    key: str
    type: type[T]
    says: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]
    per: str | None = None
    leased: bool = False  # it vanishes unless it is put again in time
    remedy: str = "its writer writes it again soon"  # what to do where it cannot be read

    def key_of(self, name: str = "") -> str:
        """Where it stands; the name belongs to documents of which there are several, and to no other."""
        if (self.per is not None) != bool(name):
            raise ValueError(f"document {self.key!r} is kept per {self.per or 'nothing'}, and is asked for {name!r}")
        return f"{self.key}.{name}" if name else self.key

    def check_lease(self, lease_s: float | None) -> None:
        """A document that must not outlive its writer is never put without a lease."""
        if self.leased and lease_s is None:
            raise ValueError(f"document {self.key!r} is kept under a lease, and is put without one")

    def encode(self, value: T) -> bytes:
        return msgspec.json.encode(value)

    def decode(self, content: bytes, name: str = "") -> T:
        try:
            return msgspec.json.decode(content, type=self.type)
        except UNREADABLE as error:
            key = self.key_of(name)
            raise DamagedDocumentError(
                f"The document {key!r} on the control bus is damaged ({error}): {self.remedy}.",
                where=key,
                expected=self.type,
                found=content,
            ) from None


@dataclass(frozen=True)
class Journal(Generic[T]):
    """Records that are appended and never changed: the newest, as many and as old as its bounds allow."""

    stream: str
    subject: str
    type: type[T]
    says: str
    written_by: tuple[str, ...]
    read_by: tuple[str, ...]
    records_max: int
    bytes_max: int | None = None
    age_s_max: int | None = None

    def decode(self, content: bytes) -> T | None:
        """A record, or None for one that cannot be read: it must not hide the others."""
        try:
            return msgspec.json.decode(content, type=self.type)
        except UNREADABLE:
            return None


ADVICE = Document(
    "advice",
    Advice,
    "how often devices may send, for a while",
    written_by=("leader",),
    read_by=("gateway",),
    leased=True,
)
ROUTES = Document(
    "routes",
    Routes,
    "which brokers new clients go to, in which shares",
    written_by=("leader",),
    read_by=("gateway", "controller"),
    remedy="gateways keep the last good routes; delete it, and the leader writes it when a broker's health changes",
)
SCALE = Document(
    "scale",
    Scale,
    "how many processing nodes shall run",
    written_by=("leader", "up"),
    read_by=("up", "controller"),
)
MODE = Document(
    "mode",
    Mode,
    "what the operator allows",
    written_by=("operator", "controller"),
    read_by=("controller",),
    remedy="nobody acts until 'tidegate freeze' or 'tidegate release' writes it again",
)
RULES = Document(
    "rules",
    AppliedRules,
    "what the operator wants done when something happens",
    written_by=("operator",),
    read_by=("controller", "operator"),
    remedy="controllers keep to the rules they have read last; 'tidegate rules apply' writes it again",
)
APPLY = Document(
    "apply",
    Apply,
    "what the operator wants done once, whatever the mode says",
    written_by=("operator",),
    read_by=("controller",),
    leased=True,
)
APPLIED = Document(
    "applied",
    Applied,
    "which decisions came of such a word",
    written_by=("leader",),
    read_by=("operator",),
    per="word",
    leased=True,
)
LEADER = Document(
    "leader",
    Holder,
    "which controller acts",
    written_by=("controller",),
    read_by=("controller", "operator"),
    leased=True,
    remedy="nobody acts until it is gone: delete it, unless it runs out by itself within a few seconds",
)
LEADER_SETTINGS = Document(
    "settings",
    dict[str, Any],
    "what the leader's loop is built from",
    written_by=("leader",),
    read_by=("controller",),
    remedy="the next leader writes it",
)
LOOP_STATE = Document(
    "loop",
    LoopState,
    "all that the loop has decided, for the next leader",
    written_by=("leader",),
    read_by=("controller",),
    remedy="controllers go on from what they read last, and one that has read nothing begins anew behind the audit's "
    "newest decision",
)
OFFSETS = Document(
    "offsets",
    dict[int, int],
    "the committed offset of each slice, as far as any controller ever saw it",
    written_by=("leader",),
    read_by=("controller",),
)
SLICES = Document(
    "slices",
    Assignment,
    "which node owns which slice, under which epoch, and which is on its way to whom",
    written_by=("node", "leader", "operator"),
    read_by=("node", "controller", "up", "operator"),
    remedy="slices stay with their nodes and cannot move; restore the control bus's data",
)
NODE_LEASES = Document(
    "lease",
    Holder,
    "which processing nodes live",
    written_by=("node",),
    read_by=("node", "controller", "operator"),
    per="node",
    leased=True,
    remedy="its node writes it anew within seconds; delete it if there is no such node",
)
PROGRESS = Document(
    "progress",
    NodeProgress,
    "what a processing node has done and how it is",
    written_by=("node",),
    read_by=("controller", "up", "operator"),
    per="node",
)
JOBS = Document(
    "jobs",
    dict[int, Annotated[int, msgspec.Meta(ge=0)]],  # one below 0 would pass for a very high one
    "what another job that reads the slices has committed of each: nothing above may leave the log",
    written_by=("job", "operator"),
    read_by=("node", "operator"),
    per="job",
    remedy="let the job write it again, or 'tidegate jobs --forget' it if the job is gone; until then a node goes by "
    "what it read last, and removes nothing from the log where it has read nothing",
)
GAPS = Document(
    "gaps",
    Gaps,
    "where the log is not what the tables have read, until an operator has closed it",
    written_by=("node", "operator"),
    read_by=("node", "controller", "operator"),
    remedy="'tidegate recover --close-all' or the next gap writes it anew; what was open before is not known any more",
)
GATEWAYS = Document(
    "gateways",
    GatewayState,
    "what a gateway has done and how it is",
    written_by=("gateway",),
    read_by=("controller",),
    per="gateway",
    leased=True,
)
MAINTAINER = Document(
    "maintainer",
    Holder,
    "whose turn it is to work on the tables",
    written_by=("maintainer", "operator"),
    read_by=("maintainer", "operator"),
    leased=True,
    remedy="the tables are not looked after until it is gone: delete it, unless it runs out by itself within a minute",
)
TABLES = Document(
    "tables",
    TablesState,
    "how the tables are, and what was done to them",
    written_by=("maintainer",),
    read_by=("maintainer", "controller", "operator"),
)
UP_ALARMS = Document(
    "up",
    list[str],
    "what is wrong with the servers and disks that 'tidegate up' looks after, in sentences",
    written_by=("up",),
    read_by=("controller",),
    leased=True,
)
COMPLETENESS = Document(
    "completeness",
    CompletenessState,
    "whether the tables have every reading that gateways acknowledged",
    written_by=("maintainer",),
    read_by=("maintainer", "controller", "operator"),
)
COMPLETENESS_LEASE = Document(
    "checker",
    Holder,
    "who compares acknowledgements with the tables",
    written_by=("maintainer",),
    read_by=("maintainer",),
    leased=True,
    remedy="nobody compares until it is gone: delete it, unless it runs out by itself within a minute",
)
IDENTITY_KEYS = Document(
    "identity-keys",
    Keys,
    "the keys of the installation, from which devices' passwords are derived",
    written_by=("operator", "up"),
    read_by=("gateway", "controller", "operator"),
    remedy="gateways keep the keys they have read last; the next 'tidegate device' command restores it from its copy",
)
ACCESS = Document(
    "access",
    AppliedAccess,
    "what devices and applications may publish and subscribe to, in place of the settings",
    written_by=("operator",),
    read_by=("gateway", "controller", "operator"),
    remedy="gateways keep to what they have read last; 'tidegate access apply' writes it again",
)
REGISTER = Document(
    "devices",
    dict[str, Registered],
    "devices that were added, and the generation of their passwords",
    written_by=("operator",),
    read_by=("controller", "operator"),
    per="shard",
    remedy="delete it and add its devices again: passwords that count stay right",
)
REVOKED = Document(
    "revoked",
    dict[str, Revocation],
    "names from which some or all passwords are no longer taken",
    written_by=("operator", "up"),
    read_by=("gateway", "controller", "operator"),
    per="shard",
    remedy="gateways keep what they have read last; the next 'tidegate device' command restores it from its copy",
)
REVOCATIONS = Document(
    "revocations",
    dict[str, int],
    "the revision of each shard of revoked names: who watches this reads only what has changed",
    written_by=("operator", "up"),
    read_by=("gateway", "operator"),
    remedy="the next 'tidegate device' command writes it again",
)
DOCUMENTS: tuple[Document[Any], ...] = (
    ADVICE,
    ROUTES,
    SCALE,
    MODE,
    RULES,
    APPLY,
    APPLIED,
    LEADER,
    LEADER_SETTINGS,
    LOOP_STATE,
    OFFSETS,
    SLICES,
    NODE_LEASES,
    PROGRESS,
    JOBS,
    GAPS,
    GATEWAYS,
    MAINTAINER,
    TABLES,
    UP_ALARMS,
    COMPLETENESS,
    COMPLETENESS_LEASE,
    IDENTITY_KEYS,
    ACCESS,
    REGISTER,
    REVOKED,
    REVOCATIONS,
)

AUDIT = Journal(
    "AUDIT",
    "audit",
    Decision,
    "every decision with its reason",
    written_by=("leader",),
    read_by=("controller", "operator"),
    records_max=1_000_000,
    bytes_max=64 * 1024**2,
)
ROUNDS = Journal(
    "ROUNDS",
    "rounds",
    Round,
    "all that the decisions of a round looked at",
    written_by=("leader",),
    read_by=("operator",),
    records_max=1_000_000,
    bytes_max=256 * 1024**2,
)
EVENTS: Journal[Notice] = Journal(
    "EVENTS",
    "events",
    cast("type[Notice]", Notice),
    "events that begin and end, plans on their way, and properties that change range",
    written_by=("leader",),
    read_by=("controller", "operator"),
    records_max=100_000,
    bytes_max=32 * 1024**2,
)
LEDGER = Journal(
    "LEDGER",
    "ledger",
    LedgerReport,
    "what gateways acknowledged, by identity, for whoever compares it with the tables",
    written_by=("gateway",),
    read_by=("maintainer", "operator"),
    records_max=1_000_000,
    bytes_max=256 * 1024**2,
    age_s_max=24 * 3600,
)
JOURNALS: tuple[Journal[Any], ...] = (AUDIT, ROUNDS, EVENTS, LEDGER)


def named(key: str) -> Document[Any] | None:
    """The entry of the catalogue that a key on the bus belongs to; None where it belongs to none."""
    head, _, name = key.partition(".")
    for document in DOCUMENTS:
        if key == document.key if document.per is None else head == document.key and name and "." not in name:
            return document
    return None
