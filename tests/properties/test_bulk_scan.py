"""Reading runs as columns against reading them one by one: the same rows, or none."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tidegate.brokers.nats import bulk

REPLY = b"$JS.ACK.SLICE_3.abc-3.1."
STAMP = 1_760_000_000_000_000_000
subjects = st.text("abc/019-", min_size=1, max_size=9).map(lambda text: b"tg.3.telemetry." + text.encode())
one_line = st.binary(max_size=40).map(lambda body: body.replace(b"\r", b"").replace(b"\n", b""))
# What looks like the beginning of a frame, right behind the headers, is read one by one instead.
plain = one_line.filter(lambda body: not body.startswith(b"HMSG "))
lookalike = st.sampled_from([b"\r\n", b"a\r\nb", b"x\r\nHMSG a 2 $JS.ACK.b.1.1.1.1 12 12\r\nNATS/1.0\r\n\r\n", b"\r"])


def frame(number: int, first: int, subject: bytes, payload: bytes, headers: int) -> bytes:
    head = b"NATS/1.0\r\n" + b"Nmqtt-Pub: 1\r\n" * headers + b"\r\n"
    reply = REPLY + b"%d.%d.%d.%d" % (first + number, number + 1, STAMP + number, 7)
    sizes = b"%d %d" % (len(head), len(head) + len(payload))
    return b"HMSG %s 2 %s %s\r\n%s%s\r\n" % (subject, reply, sizes, head, payload)


def run_of(first: int, rows: list[tuple[bytes, bytes]], headers: list[int]) -> bytes:
    return b"".join(
        frame(number, first, subject, payload, lines)
        for number, ((subject, payload), lines) in enumerate(zip(rows, headers, strict=False))
    )


def read(run: bytes, first: int) -> list[tuple[bytes, int, bytes]] | None:
    found = bulk.scan(run, len(REPLY), first, 1)
    return None if found is None else list(zip(*(column.to_pylist() for column in found), strict=True))


def expected(rows: list[tuple[bytes, bytes]]) -> list[tuple[bytes, int, bytes]]:
    return [(subject, STAMP + number, payload) for number, (subject, payload) in enumerate(rows)]


@given(st.integers(1, 10**7), st.lists(st.tuples(subjects, plain), min_size=1, max_size=120), st.integers(1, 3))
def test_plain_rows_are_all_read(first: int, rows: list[tuple[bytes, bytes]], headers: int) -> None:
    assert read(run_of(first, rows, [headers] * len(rows)), first) == expected(rows)


@given(
    st.lists(st.tuples(subjects, st.one_of(plain, lookalike)), min_size=1, max_size=12),
    st.lists(st.integers(1, 2), min_size=12, max_size=12),
)
def test_rows_of_any_shape_are_read_right_or_not_at_all(rows: list[tuple[bytes, bytes]], headers: list[int]) -> None:
    assert read(run_of(95, rows, headers), 95) in (None, expected(rows))


@given(st.lists(st.tuples(subjects, plain), min_size=2, max_size=9), st.data())
def test_a_missing_row_is_never_passed_over(rows: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    victim = data.draw(st.integers(0, len(rows) - 2))
    frames = [frame(number, 8, subject, payload, 1) for number, (subject, payload) in enumerate(rows)]
    assert read(b"".join(itertools.chain(frames[:victim], frames[victim + 1 :])), 8) is None


def test_a_run_cut_short_is_not_read() -> None:
    whole = run_of(1, [(b"tg.3.telemetry.a", b"{}")] * 3, [1] * 3)
    assert all(read(whole[:-cut], 1) is None for cut in range(1, 30))
