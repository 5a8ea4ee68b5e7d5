"""``tidegate access`` without an installation: what can be applied, and what cannot and why."""

from pathlib import Path

import pytest

from tidegate.cli.main import run
from tidegate.model.identity import Access, Application, Patterns
from tidegate.settings import access as access_files


def test_the_example_can_be_applied(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["access", "check", "examples/identity/access.yaml"]) == 0
    assert capsys.readouterr().out == "access.yaml can be applied: 4 application(s) beside devices.\n"


def test_the_example_says_what_devices_may_by_default() -> None:
    found = access_files.read(Path("examples/identity/access.yaml").read_text(), "access.yaml")
    assert found is not None
    assert found.devices == Patterns()


def test_a_file_is_read() -> None:
    text = "devices: {publishes: ['d/{device}']}\napplications:\n  - {name: a, speaks_for: [x-*], methods: [jwt]}\n"
    application = Application(name="a", speaks_for=("x-*",), methods=("jwt",))
    assert access_files.read(text, "f") == Access(
        devices=Patterns(publishes=("d/{device}",)), applications=(application,)
    )
    assert access_files.read("# nothing\n", "f") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("devices:\n  publish: []\n", "line 2, column 3: unknown key devices.publish: did you mean publishes?"),
        ("devices:\n  publishes: [a, 'b/#/c']\n", "line 2, column 18: The pattern 'b/#/c' in publishes of devices"),
        ("applications:\n  - name: a\n  - name: a\n", "line 3, column 5: Two applications are called a"),
        ("applications:\n  - {name: a, methods: [ldap]}\n", "line 2, column 15: applications[0].methods is ['ldap']"),
        ("- a\n", "line 1, column 1: that is ['a']: access has the keys devices and applications."),
        ("applications:\n  - {publishes: []}\n", "applications[0].name is missing: expected text."),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert run(["access", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tidegate: mine.yaml")
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_what_cannot_be_read_is_said(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["access", "check", name]) == 2
    assert capsys.readouterr().err.startswith(f"tidegate: {name} ")
