"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

STATE = Path(".tidegate")
State = Annotated[
    Path, typer.Option(envvar="TIDEGATE_STATE", help="Directory of the installation.", show_default=str(STATE))
]
Config = Annotated[Path | None, typer.Option(help="A TOML file with settings.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
