"""``tidegate access`` against a real control bus: applied, shown, refused, and taken back."""

import io
import json
import sys
from pathlib import Path

import pytest
from support.bus import ControlBus

from tidegate.bus.documents import ACCESS
from tidegate.cli.main import run
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live


def test_access_is_applied_shown_and_taken_back(
    installation: Installation, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def access(*arguments: str, status: int = 0) -> str:
        assert run(["access", *arguments, "--state", str(state)]) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    assert access("show").startswith("# nothing was applied: this is what the settings say\ndevices:\n")
    file = state / "mine.yaml"
    file.write_text("applications: [{name: analytics, subscribes: ['telemetry/#']}]\n")
    assert access("apply", str(file)) == "mine.yaml is applied: 1 application(s) beside devices.\n"
    with ControlBus(installation) as bus:
        applied = bus.get(ACCESS)
        assert applied is not None
        assert [one.name for one in applied.access.applications] == ["analytics"]
        assert "# mine.yaml, applied 20" in access("show")
        assert json.loads(access("show", "--json"))["access"]["applications"][0]["name"] == "analytics"
        file.write_text("applications: [{name: a/b}]\n")
        assert "Device name 'a/b'" in access("apply", str(file), status=2)
        assert bus.get(ACCESS) == applied, "a mistake changes nothing"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        assert "what the settings say counts" in access("apply", "-")
        assert bus.get(ACCESS) is None
    assert json.loads(access("show", "--json"))["applied"] is None
