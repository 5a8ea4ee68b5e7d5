"""What the control bus says reaches the judges: keys behind revocations, and only the shards that have changed."""

import asyncio
from typing import Any

from tidegate.bus.documents import ACCESS, IDENTITY_KEYS, REVOCATIONS, REVOKED, Document
from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.following import Following
from tidegate.gateway.identity.judging import Accepted, Identities, Presented
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.model.credentials import Key, Keys, password_of
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.identity import Access, AppliedAccess, Patterns
from tidegate.model.registration import Revocation, shard_of

KEY = Key(id="k1", secret=bytes(32))


class Rig:
    def __init__(self) -> None:
        self.identities = Identities(IdentitySettings(), None, lambda: 0.0)
        self.shards: dict[str, Any] = {}
        self.index: dict[str, int] | None = None
        self.reads: list[str] = []
        self.again: list[set[str] | None] = []
        self.following = Following(self.identities, self.read, self.again.append)

    async def read(self, document: Document[Any], shard: str) -> Any:
        if document is REVOCATIONS:
            return self.index
        assert document is REVOKED
        self.reads.append(shard)
        found = self.shards.get(shard)
        if isinstance(found, Exception):
            raise found
        return found

    def catch_up(self) -> tuple[str, ...]:
        return asyncio.run(self.following.catch_up())

    def judge(self, name: str) -> object:
        return self.identities.judge(Presented(user=name.encode(), password=password_of(KEY, name, 1).encode()), 0.0)

    def revoke(self, name: str, revision: int) -> str:
        shard = shard_of(name)
        self.shards[shard] = {name: Revocation(2, 0.0, True)}
        self.following.changed(REVOCATIONS, {shard: revision})
        return shard


def started() -> Rig:
    rig = Rig()
    rig.following.changed(IDENTITY_KEYS, Keys(current=KEY))
    rig.following.changed(REVOCATIONS, None)
    return rig


def test_nobody_is_let_in_before_the_revoked_names_are_known() -> None:
    rig = Rig()
    rig.following.changed(IDENTITY_KEYS, Keys(current=KEY))
    assert rig.judge("good") == verdicts.KEYS_NOT_KNOWN
    rig.revoke("bad", 7)
    assert rig.judge("good") == verdicts.KEYS_NOT_KNOWN
    assert rig.catch_up() == ()
    assert isinstance(rig.judge("good"), Accepted)
    assert rig.judge("bad") == verdicts.REVOKED
    assert not rig.following.is_behind


def test_only_a_shard_with_another_revision_is_read() -> None:
    rig = started()
    shard = rig.revoke("bad", 7)
    rig.catch_up()
    rig.catch_up()
    assert rig.reads == [shard]
    assert rig.again[-1] == {"bad"}
    rig.following.changed(REVOCATIONS, {shard: 8})
    rig.catch_up()
    assert rig.reads == [shard, shard]
    assert rig.again[-1] == set(), "it said the same"


def test_while_the_bus_is_away_what_was_known_counts_and_the_next_call_goes_on() -> None:
    rig = started()
    shard = rig.revoke("bad", 7)
    known, rig.shards[shard] = rig.shards[shard], BrokerUnavailableError("away")
    rig.catch_up()
    assert rig.following.is_behind
    assert isinstance(rig.judge("bad"), Accepted)
    rig.shards[shard] = known
    rig.catch_up()
    assert rig.judge("bad") == verdicts.REVOKED
    rig.following.changed(REVOCATIONS, None)
    rig.catch_up()
    assert rig.judge("bad") == verdicts.REVOKED, "a bus that was lost lets nobody in"


def test_a_damaged_shard_is_said_once_and_keeps_what_it_said() -> None:
    rig = started()
    shard = rig.revoke("bad", 7)
    rig.catch_up()
    rig.shards[shard] = DamagedDocumentError("It is damaged.")
    rig.following.changed(REVOCATIONS, {shard: 8})
    assert rig.catch_up() == ("It is damaged.",)
    assert rig.catch_up() == ()
    assert rig.judge("bad") == verdicts.REVOKED


def test_nobody_of_a_damaged_shard_that_was_never_read_is_let_in_and_others_are() -> None:
    rig = started()
    shard = rig.revoke("bad", 7)
    good, rig.shards[shard] = rig.shards[shard], DamagedDocumentError("It is damaged.")
    assert rig.catch_up() == ("It is damaged. Until then nobody whose name is in it is let in.",)
    assert rig.catch_up() == ()
    assert rig.judge("bad") == verdicts.KEYS_NOT_KNOWN
    assert isinstance(rig.judge("good"), Accepted)
    rig.shards[shard] = good
    rig.following.changed(REVOCATIONS, {shard: 8})
    assert rig.catch_up() == ()
    assert rig.judge("bad") == verdicts.REVOKED
    rig.shards[shard] = DamagedDocumentError("It is damaged.")
    rig.following.changed(REVOCATIONS, None)
    rig.following.changed(REVOCATIONS, {shard: 9})
    assert rig.catch_up() == ("It is damaged.",)
    assert rig.judge("bad") == verdicts.REVOKED, "what it said before stays, across a bus that was lost, too"


def test_a_shard_that_was_read_and_empty_stays_empty_when_it_is_damaged() -> None:
    rig = started()
    shard = shard_of("d")
    rig.following.changed(REVOCATIONS, {shard: 1})
    rig.catch_up()
    rig.shards[shard] = DamagedDocumentError("It is damaged.")
    rig.following.changed(REVOCATIONS, {shard: 2})
    rig.catch_up()
    assert isinstance(rig.judge("d"), Accepted)


def test_an_emptied_bus_does_not_mean_that_nobody_is_revoked() -> None:
    rig = Rig()
    rig.following.changed(IDENTITY_KEYS, None)
    rig.following.changed(REVOCATIONS, None)
    rig.catch_up()
    assert not rig.following.knows_revoked
    shard = rig.revoke("bad", 7)
    rig.catch_up()
    assert not rig.following.knows_revoked, "it is being restored, and its keys come last"
    late = shard_of("late")
    assert late != shard
    rig.index, rig.shards[late] = {shard: 7, late: 8}, {"late": Revocation(2, 0.0, True)}
    rig.following.changed(IDENTITY_KEYS, Keys(current=KEY))
    assert not rig.following.knows_revoked, "more shards may have come since they were looked at"
    assert rig.judge("late") == verdicts.KEYS_NOT_KNOWN
    rig.catch_up()
    assert rig.following.knows_revoked
    assert rig.judge("late") == rig.judge("bad") == verdicts.REVOKED
    assert isinstance(rig.judge("good"), Accepted)


def test_a_process_that_knew_who_is_revoked_knows_it_when_the_bus_is_emptied() -> None:
    rig = started()
    assert rig.following.knows_revoked, "keys, and nobody was ever revoked"
    rig.following.changed(IDENTITY_KEYS, None)
    rig.following.changed(REVOCATIONS, None)
    rig.catch_up()
    assert rig.following.knows_revoked
    assert isinstance(rig.judge("good"), Accepted)


def test_damaged_keys_keep_out_only_those_who_need_them() -> None:
    rig = Rig()
    rig.following.damaged(DamagedDocumentError("It is damaged.", where="identity-keys"))
    rig.following.changed(REVOCATIONS, None)
    assert rig.following.knows_revoked
    assert rig.judge("good") == verdicts.KEYS_NOT_KNOWN
    rig.following.changed(IDENTITY_KEYS, Keys(current=KEY))
    assert isinstance(rig.judge("good"), Accepted)
    rig.following.damaged(DamagedDocumentError("It is damaged.", where="identity-keys"))
    assert isinstance(rig.judge("good"), Accepted), "those that were read stay"


def test_access_that_is_applied_counts_for_everybody() -> None:
    rig = started()
    access = Access(devices=Patterns(publishes=("up/{device}",)))
    rig.following.changed(ACCESS, AppliedAccess(access=access, name="a", applied_at_s=0))
    assert rig.again[-1] is None
    found = rig.judge("d")
    assert isinstance(found, Accepted)
    assert found.rights.may_publish(b"up/d")
    rig.following.changed(ACCESS, None)
    found = rig.judge("d")
    assert isinstance(found, Accepted)
    assert not found.rights.may_publish(b"up/d")


def test_access_that_was_never_readable_lets_nobody_in_until_it_is_readable_or_deleted() -> None:
    access = AppliedAccess(access=Access(devices=Patterns(publishes=("up/{device}",))), name="a", applied_at_s=0)
    damaged = DamagedDocumentError("It is damaged.", where="access")
    for mended in (access, None):
        rig = Rig()
        rig.following.changed(IDENTITY_KEYS, Keys(current=KEY))
        assert "no client is let in" in rig.following.damaged(damaged)
        rig.following.changed(REVOCATIONS, None)
        assert rig.judge("d") == verdicts.KEYS_NOT_KNOWN
        rig.following.changed(ACCESS, mended)
        found = rig.judge("d")
        assert isinstance(found, Accepted)
        assert found.rights.may_publish(b"up/d") == (mended is not None)
        assert rig.following.damaged(damaged) == "", "what was read last counts on"
        assert isinstance(rig.judge("d"), Accepted)
