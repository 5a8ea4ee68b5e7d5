"""What the sink refuses: another payload under a used identity, and readings from before all memory."""

import json
import re
from pathlib import Path

import pytest
from sinking import DAY_S, NOW_S, Bench, reading

from maintaining import active, data_files


def test_the_same_identity_with_another_payload_is_rejected_with_both_digests(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    other = b'{"boot":1,"seq":2,"time":2,"value":99.0,"unit":"K"}'
    bench.write(0, 2, [other, reading(3)])
    assert bench.sequences() == [1, 2, 3]
    (row,) = bench.table("rejected").to_pylist()
    digests = re.findall("[0-9a-f]{16}", row["reason"])
    assert row["reason"].startswith("identity used twice: boot 1, seq 2, stored digest ")
    assert len(set(digests)) == 2
    assert json.loads(row["payload"]) == {"boot": 1, "seq": 2, "time": 2.0, "value": 99.0, "unit": "K"}
    assert bench.repeats == 0


def test_two_payloads_under_one_identity_in_one_batch(bench: Bench) -> None:
    result = bench.task(0, 0, [reading(1), b'{"boot":1,"seq":1,"time":1,"value":7}', reading(1)])
    bench.sink.commit_results([result])
    assert bench.sequences() == [1]
    assert (result.repeats, result.rejects) == (1, {("device-0", "identity used twice"): 1})
    assert bench.table("rejected")["offset"].to_pylist() == [2]


OTHER = b'{"boot":1,"seq":1,"time":1,"value":7}'
THIRD = b'{"boot":1,"seq":1,"time":1,"value":8}'


@pytest.mark.parametrize(
    ("batch", "repeats", "rejected"),
    [
        pytest.param([OTHER, reading(1)], 1, [4], id="another one first"),
        pytest.param([reading(1), OTHER], 1, [5], id="the repeat first"),
        pytest.param([OTHER, reading(1), THIRD, reading(1), reading(4)], 2, [4, 6], id="three of them"),
        pytest.param([OTHER, THIRD], 0, [4, 5], id="two others, no repeat"),
    ],
)
def test_what_the_table_has_is_a_repeat_whatever_else_a_batch_says_of_it(
    bench: Bench, directory: Path, batch: list[bytes], repeats: int, rejected: list[int]
) -> None:
    bench.write(0, 0, [reading(1), reading(2), reading(3)])
    result = bench.task(0, 3, batch)
    bench.sink.commit_results([result])
    bench.sink.settle()
    assert result.repeats == repeats
    assert result.rejects == {("device-0", "identity used twice"): len(rejected)}
    rows = bench.table("rejected").sort_by("offset").to_pylist()
    assert [row["offset"] for row in rows] == rejected
    assert len({re.findall("stored digest ([0-9a-f]{16})", row["reason"])[0] for row in rows}) == 1, "of what is stored"
    assert [row["value"] for row in bench.table("readings").to_pylist() if row["seq"] == 1] == [1.5]
    assert data_files(directory) == active(directory), "nothing is left behind"


def taken(seq: int, days_ago: float, boot: int = 1) -> bytes:
    return json.dumps({"boot": boot, "seq": seq, "time": NOW_S - days_ago * DAY_S, "value": 1.5}).encode()


def test_what_is_older_than_the_horizon_is_rejected(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [taken(1, 0), taken(2, 29)])
    bench.write(0, 2, [taken(3, 40), taken(1, 40), taken(1, 40, boot=2)])
    bench.write(0, 5, [taken(2, 40, boot=2)])
    assert bench.sequences() == [1, 2]
    reasons = bench.table("rejected")["reason"].to_pylist()
    assert {reason.partition(":")[0] for reason in reasons} == {"too old"}
    assert len(reasons) == 4
    assert "identities are remembered for 30 days" in reasons[0]


def test_an_old_reading_without_identity_is_stored(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [json.dumps({"value": 1, "time": NOW_S - 40 * DAY_S}).encode()])
    assert bench.table("readings").num_rows == 1


def test_a_clock_that_was_never_set_is_not_too_old(bench: Bench) -> None:
    bench.arrived_s = NOW_S
    bench.write(0, 0, [b'{"boot":1,"seq":1,"time":12,"value":7}', b'{"boot":2,"seq":1,"time":946684800,"value":7}'])
    assert bench.sequences() == [1, 1]
