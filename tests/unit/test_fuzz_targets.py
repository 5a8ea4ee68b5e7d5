"""What the fuzz run starts from passes, what it once found stays mended, and its figures come from what was counted."""

import pytest

from tidegate.mqtt import frames
from tidegate_bench.fuzz.run import checks, rows_of
from tidegate_bench.fuzz.seeds import seeds
from tidegate_bench.fuzz.targets import case_of, targets

TARGETS = targets(frames)
# Bytes that once went wrong, as the fuzz run kept them.
FOUND = {
    "a reserved packet type that is too large, cut or whole": "00000101" + "00ffff7f",
    "a length that never ends, in a chunk that is larger than a packet": "00020110" + "b9" * 5 + "00" * 220,
    "an acknowledgement of the broker whose properties are cut off": "04020000" + "86400400070080",
    "a ping answer of the broker with content": "03000000" + "83d00100",
    "a release of the broker without its flag": "03000000" + "8460020007",
}


def run(data: bytes) -> str:
    found = case_of(data, list(TARGETS))
    assert found is not None
    name, case = found
    TARGETS[name](case)
    return name


def test_every_seed_passes_and_every_target_has_one() -> None:
    assert {run(seed) for seed in seeds()} == set(TARGETS)


@pytest.mark.parametrize("data", [pytest.param(bytes.fromhex(text), id=name) for name, text in FOUND.items()])
def test_what_was_found_is_mended(data: bytes) -> None:
    run(data)


def test_too_few_bytes_are_no_case() -> None:
    assert case_of(b"\x00\x01\x02", list(TARGETS)) is None


def test_figures_add_up_over_processes_and_a_dead_process_is_a_crash() -> None:
    rows = rows_of(
        [
            {"cases": {"scanner": 600_000, "opening": 1}, "crashes": {}, "hangs": {}, "is_done": True},
            {"cases": {"scanner": 400_000}, "crashes": {"process": 1}, "hangs": {"opening": 2}, "is_done": False},
        ],
        edges=7,
    )
    assert [row["target"] for row in rows] == ["opening", "process", "scanner"]
    assert rows[0] == {"target": "opening", "cases": 1, "crashes": 0, "hangs": 2, "edges": 7}
    assert [(check.name, check.value, check.holds) for check in checks(rows)] == [
        ("fuzz_cases", 1_000_001, True),
        ("fuzz_crashes", 1, False),
        ("fuzz_hangs", 2, False),
    ]
