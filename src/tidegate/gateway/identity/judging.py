"""All methods of one gateway process, in their order: who a client is, what it may do, and whether it still may.

The shell hands in the time and what the control bus says. Where a method has to wait for an answer, ``judge`` says None
and ``judge_slowly`` waits; whoever needs no such method never does.
"""

from collections.abc import Callable, Mapping

import msgspec

from tidegate.gateway.identity.certificates import Certificates
from tidegate.gateway.identity.methods import Derived, Method, PassedOn
from tidegate.gateway.identity.passwords import PasswordFile
from tidegate.gateway.identity.revocations import Revocations
from tidegate.gateway.identity.rights import EVERYTHING, AccessRules, Grant, Rights
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.identity.verdicts import (
    EXPIRED,
    KEYS_NOT_KNOWN,
    NO_NAME,
    NOBODY_KNOWS,
    NOT_BY_THIS_METHOD,
    REVOKED,
    Accepted,
    Certificate,
    Known,
    Later,
    Presented,
    Refused,
)
from tidegate.model.credentials import Keys
from tidegate.model.devices import check_device
from tidegate.model.errors import UserError
from tidegate.model.identity import Access, MethodName
from tidegate.model.registration import Revocation

__all__ = ["Accepted", "Certificate", "Identities", "Looked", "Presented", "Refused"]


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """What a look has found: sentences for the log, and whose connections have to be judged again."""

    sentences: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    everybody: bool = False


class Identities:
    """``access`` is what the control bus says; None means what the settings say. ``clock`` gives Unix time.

    Where ``strict``, a file that cannot be used raises ``UserError``; otherwise its method is off until it can.
    """

    def __init__(
        self, settings: IdentitySettings, access: Access | None, clock: Callable[[], float], *, strict: bool = True
    ) -> None:
        self._settings, self._clock = settings, clock
        self._derived = Derived()
        self._methods: dict[MethodName, Method] = {name: self._made(name, strict) for name in settings.methods}
        self._revocations = Revocations()
        self._rules = AccessRules(access or settings.access)
        self._is_access_damaged = False

    def _made(self, method: MethodName, strict: bool) -> Method:
        chosen = self._settings
        match method:
            case "derived":
                return self._derived
            case "file":
                return PasswordFile(chosen.file.path, strict=strict)
            case "certificate":
                return Certificates(chosen.certificate.name_from)
            case "jwt":
                from tidegate.gateway.identity.web_tokens import WebTokens  # noqa: PLC0415 - its libraries load slowly

                return WebTokens(chosen.jwt, strict=strict)
            case "http":
                from tidegate.gateway.identity.asking_service import Service  # noqa: PLC0415 - the same

                return Service(chosen.http, self._clock, strict=strict)
            case "broker":
                return PassedOn(decides_topics=chosen.broker.decides_topics)

    @property
    def needs_bus(self) -> bool:
        """Whether what the control bus says has to be known before anybody is let in."""
        return any(method != "broker" for method in self._settings.methods)

    # -- judging

    def judge(self, presented: Presented, now_s: float) -> Accepted | Refused | None:
        """None where an answer has to be waited for."""
        for method, how in self._methods.items():
            found = how.find(presented, now_s)
            if isinstance(found, Later):
                return None
            if found is not None:
                return self._settled(method, found, now_s)
        return KEYS_NOT_KNOWN if self._is_one_off else NOBODY_KNOWS

    async def judge_slowly(self, presented: Presented) -> Accepted | Refused:
        for method, how in self._methods.items():
            found = how.find(presented, self._clock())
            if isinstance(found, Later):
                found = await found.ask()
            if found is not None:
                return self._settled(method, found, self._clock())
        return KEYS_NOT_KNOWN if self._is_one_off else NOBODY_KNOWS

    @property
    def _is_one_off(self) -> bool:
        return any(how.is_off for how in self._methods.values())

    def still_allowed(self, accepted: Accepted, now_s: float) -> Accepted | Refused:
        """What is to be said of a live connection after any change: perhaps with other rights, perhaps no longer."""
        keys, method, name = self._derived.keys, accepted.method, accepted.name
        if accepted.expires_s is not None and now_s >= accepted.expires_s:
            return EXPIRED
        if accepted.key_id is not None and keys is not None and not keys.has(accepted.key_id):
            return REVOKED
        if self._is_revoked(name, accepted.generation, now_s) or not self._methods[method].still_knows(name):
            return REVOKED
        rights = self._rights(name, method, accepted.rights if accepted.has_own_patterns else None)
        if rights is None:
            return NOT_BY_THIS_METHOD
        return msgspec.structs.replace(accepted, rights=rights, is_application=self._rules.is_application(name))

    def _settled(self, method: MethodName, found: Known | Refused, now_s: float) -> Accepted | Refused:
        if isinstance(found, Refused):
            return found
        name, proof, own = found.name, found.proof, found.patterns
        if not _is_name(name) and not self._leaves_all_to_the_broker(method):
            return NO_NAME
        refused = self._refused(method, found, now_s)
        if refused is not None:
            return refused
        rights = self._rights(name, method, None if own is None else Rights(name, Grant(own.publishes, own.subscribes)))
        if rights is None:
            return NOT_BY_THIS_METHOD
        return Accepted(
            name=name,
            method=method,
            rights=rights,
            is_application=self._rules.is_application(name),
            generation=None if proof is None else proof.generation,
            key_id=None if proof is None else proof.key_id,
            expires_s=found.expires_s,
            passes_credentials=method == "broker",
            keeps_identifier=tuple(self._settings.methods) == ("broker",),
            has_own_patterns=own is not None,
        )

    def _refused(self, method: MethodName, found: Known, now_s: float) -> Refused | None:
        """Why somebody who is known is not let in. The broker takes any name, also one that is not its own."""
        if method == "broker" and self._is_one_off:
            return KEYS_NOT_KNOWN
        if found.expires_s is not None and now_s >= found.expires_s:
            return EXPIRED
        if self._is_access_damaged or self._revocations.is_unknown(found.name):
            return KEYS_NOT_KNOWN
        generation = None if found.proof is None else found.proof.generation
        return REVOKED if self._is_revoked(found.name, generation, now_s) else None

    def _rights(self, name: str, method: MethodName, own: Rights | None) -> Rights | None:
        """None where somebody of that name may not be known by this method. ``own`` is the method's word."""
        application = self._rules.application(name)
        if application is not None and method not in application.methods:
            return None
        if own is not None:
            return own
        if application is not None:
            return self._rules.rights_of_application(name)
        if self._leaves_all_to_the_broker(method):
            return Rights(name, EVERYTHING)
        return self._rules.rights_of_device(name)

    def _leaves_all_to_the_broker(self, method: MethodName) -> bool:
        """A name is no more than a word then."""
        return method == "broker" and self._settings.broker.decides_topics

    def _is_revoked(self, name: str, generation: int | None, now_s: float) -> bool:
        revocation = self._revocations.of(name)
        if revocation is None:
            return False
        return revocation.everywhere or (generation is not None and generation < revocation.lowest(now_s))

    # -- what changes

    def keys_changed(self, keys: Keys | None) -> None:
        """While they are not known nobody is let in by them. Those that were known are kept when the bus forgets."""
        if keys is not None:
            self._derived.keys = keys

    def revoked_changed(self, shard: str, revoked: Mapping[str, Revocation]) -> set[str]:
        """The names whose connections have to be judged again."""
        return self._revocations.changed(shard, revoked, self._clock())

    def revoked_damaged(self, shard: str) -> bool:
        """True where nobody whose name is in that shard is let in: it was never read."""
        return self._revocations.damaged(shard)

    def access_damaged(self) -> None:
        """What was applied cannot be read, and the settings may allow more: nobody is let in until it can."""
        self._is_access_damaged = True

    def access_changed(self, access: Access | None) -> None:
        self._is_access_damaged = False
        self._rules = AccessRules(access or self._settings.access)

    def look(self, now_s: float, is_here: Callable[[str], bool]) -> Looked:
        """Once a second: files that have changed, and revocations of those who are here that have come into force."""
        found = [how.look() for how in self._methods.values()]
        return Looked(
            sentences=tuple(sentence for one in found for sentence in one.sentences),
            names=frozenset(self._revocations.due(now_s, is_here)),
            everybody=any(one.changed for one in found),
        )

    async def close(self) -> None:
        for how in self._methods.values():
            await how.close()


def _is_name(name: str) -> bool:
    try:
        check_device(name)
    except (UserError, UnicodeEncodeError):
        return False
    return True
