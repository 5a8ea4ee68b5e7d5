"""The verdict as a picture: what the terminal shows, as an SVG file that needs nothing from elsewhere."""

import io
import re
from pathlib import Path

from rich.console import Console

from tidegate.demo.story import Story
from tidegate.demo.verdict import Figures

_WIDTH = 92


def save(path: Path, without: Figures, protected: Figures) -> None:
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    Story(console).verdict(without, protected)
    drawn = console.export_svg(title="tidegate demo")
    # Rich names itself and a font on the network: the system's own has to do.
    drawn = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", drawn, flags=re.DOTALL)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawn.replace("Fira Code", "ui-monospace, Menlo, Consolas"))
