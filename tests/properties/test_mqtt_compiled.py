"""The frame scanner, compiled and as source: the same results on the same bytes."""

import importlib.util
import itertools
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.mqtt import frames

SOURCE = Path(frames.__file__).with_name("frames.py")
needs_compiled = pytest.mark.skipif(Path(frames.__file__) == SOURCE, reason="the frame scanner is not compiled here")


def load_source() -> ModuleType:
    spec = importlib.util.spec_from_file_location("frames_as_source", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


source = load_source()
packets = st.sampled_from(
    (
        b"\x30\x04\x00\x01tx",
        b"\x32\x06\x00\x01t\x00\x07x",
        b"\x34\x0a\x00\x01t\x00\x07\x03\x23\x00\x01x",
        b"\x40\x02\x00\x07",
        b"\x62\x02\x00\x07",
        b"\x82\x06\x00\x07\x00\x01t\x00",
        b"\x30\x80\x02" + b"\x00\x03a/b" + bytes(251),
        b"\xc0\x00",
        b"\xe0\x00",
    )
)
streams = st.lists(st.one_of(packets, packets, packets, st.binary(max_size=12)), max_size=10).map(b"".join)


def seen(module: ModuleType, chunks: list[bytes], arguments: dict[str, Any]) -> list[Any]:
    scanner = module.FrameScanner(400, **arguments)
    found: list[Any] = []
    for chunk in chunks:
        data = scanner.scan(chunk)
        found.append((data, module.frames_of(data), scanner.unfinished))
        found.append([getattr(scanner, name) for name in ("kinds", "publishes", "cost", "acknowledged", "topics")])
        found.append((scanner.topic, scanner.problem, scanner.code))
    return found


@needs_compiled
def test_what_is_compiled_is_not_older_than_its_source() -> None:
    """Compiled modules go before their source. One that is old hides a change: `make setup` compiles them anew."""
    root = Path(__file__).parents[2]
    names = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["tidegate"]["compiled"]
    for path in (root / name for name in names):
        (module,) = path.parent.glob(f"{path.stem}.*.so")
        assert module.stat().st_mtime >= path.stat().st_mtime, f"run `make setup`: {path.name} has changed"


@needs_compiled
@given(
    streams,
    st.lists(st.integers(0, 10_000), max_size=10),
    st.sampled_from((3, 4, 5)),
    st.booleans(),
)
def test_compiled_and_source_say_the_same(stream: bytes, places: list[int], version: int, from_device: bool) -> None:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    chunks = [stream[start:end] for start, end in itertools.pairwise(edges)]
    arguments = {"version": version, "from_device": from_device, "topic_bytes_max": 20, "properties_max": 2}
    assert seen(frames, chunks, arguments) == seen(source, chunks, arguments)


@needs_compiled
@given(st.binary(max_size=40), st.integers(0, 20))
def test_sizes_and_properties_are_counted_alike(data: bytes, position: int) -> None:
    assert frames.frame_size(data, position) == source.frame_size(data, position)
    assert frames.count_properties(data, 0, len(data)) == source.count_properties(data, 0, len(data))
