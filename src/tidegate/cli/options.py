"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from tidegate.model.errors import UserError

STATE = Path(".tidegate")
State = Annotated[
    Path, typer.Option(envvar="TIDEGATE_STATE", help="Directory of the installation.", show_default=str(STATE))
]
Config = Annotated[Path | None, typer.Option(help="A TOML file with settings.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


def make_directory(out: Path | None) -> None:
    """What ``--out`` names, if anything."""
    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out} cannot be made ({error.strerror}): name a directory.") from None
