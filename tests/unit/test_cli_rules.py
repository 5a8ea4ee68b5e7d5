"""``tidegate rules`` without an installation: what can be applied, what cannot and why, and the schema."""

import io
import json
import sys
from pathlib import Path

import pytest

from tidegate.bus.installation import save_installation
from tidegate.cli.main import run
from tidegate.model.installation import Installation


def test_the_example_can_be_applied(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "check", "examples/rules/evening.yaml"]) == 0
    assert capsys.readouterr().out == "evening.yaml can be applied: 2 event(s) and 2 rule(s).\n"


def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("rules:\n  - name: cool\n    on: nothing\n    plan:\n      - nodes: 2\n")
    assert run(["rules", "check", str(file)]) == 2
    assert capsys.readouterr().err == (
        "tidegate: mine.yaml, line 3, column 5: rules[0].on names 'nothing', which is no event: choose one of "
        "overload.\n"
    )


@pytest.mark.parametrize(("slices", "there_are"), [(2, "slices are 0 to 1"), (0, "this installation has none")])
def test_a_slice_that_there_is_not_is_refused_before_it_is_applied(
    slices: int, there_are: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Installation(
        control_urls=("nats://127.0.0.1:1",),
        data_urls=(),
        mqtt_addresses=(),
        monitor_urls=(),
        mqtt_user="",
        mqtt_password="",
        slices=slices,
        tables="",
    )
    save_installation(here, tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text("rules:\n  - name: move\n    on: overload\n    plan:\n      - slices: {2: node-2}\n")
    assert run(["rules", "apply", str(file), "--state", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"tidegate: Rule move moves slice 2, which there is not: {there_are}.\n"


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_what_cannot_be_read_is_said(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "check", name]) == 2
    assert capsys.readouterr().err.startswith(f"tidegate: {name} ")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"\xff\xfee\x00", "line 1, column 1"),
        ("events: {}\n# Brücke".encode("latin-1"), "line 2, column 5"),
        ("# Brücke\n# \udce4".encode("utf-8", "surrogatepass"), "line 2, column 3"),
    ],
)
def test_what_is_not_in_utf_8_is_refused_where_it_stands(
    content: bytes, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(content)
    assert run(["rules", "check", str(file)]) == 2
    said = f"tidegate: mine.yaml, {place}: this is no text in UTF-8: save the file as that.\n"
    assert capsys.readouterr().err == said


class Endless(io.RawIOBase):
    """As many bytes as anybody asks for; to read it whole would never end."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        assert 0 < size < 1_000_000
        return b"#" * size


def test_a_file_without_end_is_refused_unread(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["rules", "check", "/dev/zero"]) == 2
    said = "is longer than 50,000 characters: shorten it, or split what it wants.\n"
    assert capsys.readouterr().err == f"tidegate: zero {said}"
    monkeypatch.setattr(sys, "stdin", type("Standard", (), {"buffer": Endless()}))
    assert run(["rules", "check", "-"]) == 2
    assert capsys.readouterr().err == f"tidegate: standard input {said}"


def test_lines_may_end_in_any_way(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_bytes(b"events:\r\n  many: {when: waiting > 5}\r\n")
    assert run(["rules", "check", str(file)]) == 0


def test_the_schema_says_what_may_stand_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$defs"]["EventRule"]["properties"].keys() >= {"when", "for_s", "of", "need", "until"}
    assert schema["$defs"]["StepRule"]["properties"].keys() >= {"send_every_s", "nodes", "slices", "policy", "options"}
