"""What an operator may choose about identity: how clients prove who they are, and what they may do then."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from tidegate.model.errors import UserError
from tidegate.model.identity import Access, Application, MethodName, Patterns, check_applications

Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Algorithm = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"
]


class FileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Names and hashed passwords, as Mosquitto keeps them."""

    path: str = ""


class CertificateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A listener with ``client_ca`` verifies certificates; this says where in one the name stands."""

    name_from: Literal["common_name", "dns", "uri", "email"] = "common_name"


class JwtSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tokens that somebody else signs. ``keys`` are PEM files of public keys or JWKS files, ``secret`` a file with the
    secret of the HS algorithms."""

    keys: tuple[str, ...] = ()
    secret: str = ""
    algorithms: tuple[Algorithm, ...] = ("RS256", "ES256", "EdDSA")
    name_claim: Annotated[str, msgspec.Meta(min_length=1)] = "sub"
    issuer: str = ""
    audience: str = ""
    leeway_s: Annotated[float, msgspec.Meta(ge=0, le=600)] = 30.0

    def check(self) -> None:
        if not self.keys and not self.secret:
            raise UserError("keys and secret are empty: name a file with public keys, or one with a secret.")
        if not self.algorithms:
            raise UserError("algorithms is empty: name at least one, like RS256.")
        shared = [name for name in self.algorithms if name.startswith("HS")]
        if bool(shared) != bool(self.secret):
            remedy = f"name its file as secret, or leave {shared[0]} out" if shared else "add HS256 to algorithms"
            raise UserError(f"algorithms and secret do not fit together: {remedy}.")
        if bool(self.keys) != (len(shared) < len(self.algorithms)):
            remedy = "add an algorithm like RS256" if self.keys else "name the files of their keys, or leave them out"
            raise UserError(f"algorithms and keys do not fit together: {remedy}.")


class HttpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Somebody's own service that knows who is who. ``header`` is a file with one line, ``Name: value``, that is sent
    along; ``ca`` a PEM file that vouches for the service."""

    url: str = ""
    ca: str = ""
    header: str = ""
    timeout_s: Seconds = 2.0
    # How long an answer counts: of who was let in, and of who was refused.
    cache_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 60.0
    refused_cache_s: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 5.0
    cached_max: Positive = 10_000
    # Requests under way at a time, per process; who comes beyond that is told to come again.
    requests_max: Positive = 64

    def check(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"url is {self.url!r}: name the service, like https://accounts.example/mqtt.")


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Credentials are passed on, and the broker decides about them; about topics as well, if it ``decides_topics``."""

    decides_topics: bool = False


class IdentitySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Methods are asked in their order; the first that knows a client decides."""

    methods: Annotated[tuple[MethodName, ...], msgspec.Meta(min_length=1)] = ("derived",)
    file: FileSettings = msgspec.field(default_factory=FileSettings)
    certificate: CertificateSettings = msgspec.field(default_factory=CertificateSettings)
    jwt: JwtSettings = msgspec.field(default_factory=JwtSettings)
    http: HttpSettings = msgspec.field(default_factory=HttpSettings)
    broker: BrokerSettings = msgspec.field(default_factory=BrokerSettings)
    # Until 'tidegate access apply' says otherwise.
    devices: Patterns = msgspec.field(default_factory=Patterns)
    applications: tuple[Application, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.methods)) < len(self.methods):
            raise UserError("[identity] methods names one twice: name each once.", where="methods")
        check_applications(self.applications)
        if "file" in self.methods and not self.file.path:
            raise UserError("[identity.file] path is empty: name the file with names and passwords.", where="file")
        for method, section in (("jwt", self.jwt), ("http", self.http)):
            if method in self.methods:
                try:
                    section.check()
                except UserError as error:
                    raise UserError(f"[identity.{method}] {error}", where=method) from None

    @property
    def access(self) -> Access:
        return Access(devices=self.devices, applications=self.applications)
