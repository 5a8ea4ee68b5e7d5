"""What can be set about a processing node, and why each default is what it is."""

from typing import Annotated

import msgspec

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One processing node.

    ``trigger_ms`` 0 starts the next batch when the last one is done: lowest delay, most commits. ``cost_us_per_record``
    makes every record take that long on its core, which gives a node a known capacity; 0 takes none. It waits instead
    of computing, so that several nodes on one machine have the capacity they would have on machines of their own.
    """

    name: Name = "node-1"
    master: str = "local[2]"
    trigger_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 250
    # Batches are committed together, this long after the last commit; 0 commits each. Longer means fewer commits and
    # files, and readings that are that much older when the tables have them.
    commit_ms: Annotated[int, msgspec.Meta(ge=0, le=600_000)] = 0
    rows_per_batch_max: Positive = 400_000
    # By the mean size of a slice's messages, so a batch may have more; what its tasks hold in memory is bounded anyway.
    # 400,000 small readings take half of this, and the largest ones are worked off within seconds: a slice that has to
    # be moved, or a node that is to stop, waits for the batch that is under way.
    bytes_per_batch_max: Positive = 256 << 20
    cost_us_per_record: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] = 0.0
    # A node that has not renewed its lease for this long is taken for dead and loses its slices.
    lease_s: Annotated[float, msgspec.Meta(ge=0.5, le=600)] = 5.0
    # A query without a sign of life for this long hangs, and its node ends so that others take its slices. It is longer
    # than any pause of a healthy one; slow batches stretch it by themselves, and a first batch has ten times as long.
    stall_s_min: Annotated[float, msgspec.Meta(ge=2, le=86_400)] = 30.0
    window_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 60
    # A slice's identities are written down this often, which bounds what a taker has to read back.
    snapshot_s: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 2.0
    # For how long a reading that comes again is recognised. What was taken earlier than this is rejected as too old.
    identity_horizon_days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30
    # How often what every job has committed is removed from the log.
    purge_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 10.0
    # Somebody else's job that has not written down how far it is for this long no longer keeps readings in the log: one
    # that is gone for good would fill the disk, and one that was away for a night must find all of it.
    job_silent_s_max: Annotated[float, msgspec.Meta(ge=1)] = 86_400.0
    heap_mib: Annotated[int, msgspec.Meta(ge=512)] = 1024
