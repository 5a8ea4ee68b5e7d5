"""Nothing leaves the log before every job that reads it has committed it; no job keeps it for ever."""

import pytest

from tidegate.bus.key_value import Entry
from tidegate.model.positions import position
from tidegate.pipeline.jobs import WATCHED_S, JobBook, Kept, below_every_job

DAY_S = 86_400.0
NOW_S = 1_000_000_000.0


@pytest.mark.parametrize(
    ("committed", "others", "safe"),
    [
        pytest.param({0: 9, 1: 4}, (), {0: 9, 1: 4}, id="no other job reads the log"),
        pytest.param({0: 9, 1: 4}, ({0: 5},), {0: 5, 1: 4}, id="a slower job holds its slice back"),
        pytest.param({0: 9}, ({0: 12, 7: 1},), {0: 9}, id="a faster job does not push"),
        pytest.param({0: 9}, ({0: 0}, {0: 3}), {0: 0}, id="a job that has not begun keeps everything"),
        pytest.param({0: position(1, 50)}, (), {0: 50}, id="a log that was set back"),
        pytest.param({0: position(1, 50)}, ({0: 80},), {0: 50}, id="a job that was farther in the old log"),
        pytest.param({0: position(1, 50)}, ({0: position(1, 30)},), {0: 30}, id="a slower job in the log of today"),
    ],
)
def test_the_slowest_job_decides(
    committed: dict[int, int], others: tuple[dict[int, int], ...], safe: dict[int, int]
) -> None:
    assert below_every_job(committed, others) == safe


def entry(content: bytes, silent_s: float = 0.0, revision: int = 1) -> Entry:
    return Entry(content, revision, NOW_S - silent_s)


def read(book: JobBook, bus_now_s: float | None = NOW_S, now_s: float = 0.0, **entries: Entry) -> Kept:
    return book.read(entries, bus_now_s, now_s)


def test_jobs_that_can_be_read_keep_what_they_have_not_committed() -> None:
    kept = read(JobBook(DAY_S), a=entry(b'{"0": 5}'), b=entry(b'{"1": 7}'))
    assert kept == Kept(({0: 5}, {1: 7}), everything=False, alarms=())


def test_one_that_cannot_be_read_counts_as_it_did_and_stops_no_other() -> None:
    book = JobBook(DAY_S)
    read(book, a=entry(b'{"0": 5}'), b=entry(b'{"1": 7}'))
    kept = read(book, a=entry(b"{{", revision=2), b=entry(b'{"1": 8}', revision=3))
    assert (kept.jobs, kept.everything) == (({0: 5}, {1: 8}), False)
    (alarm,) = kept.alarms
    assert "'jobs.a' on the control bus is damaged" in alarm
    assert "tidegate jobs --forget" in alarm
    assert read(book, a=entry(b'{"0": 6}', revision=4)) == Kept(({0: 6},), everything=False, alarms=())


def test_one_that_could_never_be_read_keeps_everything() -> None:
    kept = read(JobBook(DAY_S), a=entry(b"{{"))
    assert (kept.jobs, kept.everything, len(kept.alarms)) == ((), True, 1)


@pytest.mark.parametrize("content", [b'{"0": 5}', b"{{"])
def test_one_that_is_gone_for_long_keeps_nothing_and_is_named(content: bytes) -> None:
    book = JobBook(DAY_S)
    old = entry(content, silent_s=1.5 * DAY_S)
    first = read(book, old_one=old)
    assert first.jobs or first.everything, "it may yet write: the bus's clock may have leapt"
    kept = read(book, now_s=WATCHED_S, old_one=old)
    assert (kept.jobs, kept.everything) == ((), False)
    (alarm,) = kept.alarms
    assert alarm.startswith("The job old_one has not written 'jobs.old_one' for 1.5 days")
    assert alarm.endswith("start it again, and it counts from its next word; or 'tidegate jobs --forget old_one'.")
    back = read(book, now_s=2 * WATCHED_S, old_one=entry(b'{"0": 5}', revision=2))
    assert back == Kept(({0: 5},), everything=False, alarms=())


@pytest.mark.parametrize(
    ("bus_now_s", "written"),
    [
        pytest.param(None, 10 * DAY_S, id="nobody knows the bus's time"),
        pytest.param(NOW_S, DAY_S, id="silent for exactly as long as it may be"),
        pytest.param(NOW_S - 100 * DAY_S, 10 * DAY_S, id="the bus's clock went back"),
    ],
)
def test_a_job_whose_silence_is_not_certain_stays(bus_now_s: float | None, written: float) -> None:
    book = JobBook(DAY_S)
    for now_s in (0.0, WATCHED_S, 10 * DAY_S):  # this machine's clock alone expires nobody
        kept = read(book, bus_now_s, now_s, a=entry(b'{"0": 5}', silent_s=written))
        assert kept == Kept(({0: 5},), everything=False, alarms=())


def test_a_bus_whose_clock_leaps_ahead_does_not_expire_a_job_that_writes() -> None:
    book = JobBook(DAY_S)
    for revision in range(1, 20):
        kept = read(book, NOW_S, revision * 60.0, a=entry(b'{"0": 5}', silent_s=30 * DAY_S, revision=revision))
        assert kept.alarms == ()


def test_a_job_that_was_forgotten_is_forgotten() -> None:
    book = JobBook(DAY_S)
    read(book, a=entry(b'{"0": 5}'))
    assert read(book) == Kept((), everything=False, alarms=())
    assert read(book, a=entry(b"{{")).everything, "one of the same name is another job"
