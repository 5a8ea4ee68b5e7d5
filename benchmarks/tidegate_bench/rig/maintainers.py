"""A maintainer under test."""

from collections.abc import Mapping
from pathlib import Path

from tidegate.local.parts import Part


class MaintainerProcess(Part):
    """A ``tidegate maintainer``, started at once. ``settings`` are those of its section, by name."""

    def __init__(self, state: Path, settings: Mapping[str, str], name: str = "maintainer-1") -> None:
        environment = {f"TIDEGATE_MAINTENANCE__{key.upper()}": value for key, value in settings.items()}
        arguments = ["maintainer", "--name", name, "--state", str(state)]
        super().__init__(name, arguments, environment, state / f"{name}.log")
        self.start()
