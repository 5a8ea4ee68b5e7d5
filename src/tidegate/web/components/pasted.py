"""Lines to paste into a shell: selectable, and with a button that copies them.

The script copies by way of the page's selection: browsers hide their clipboard from pages that come without TLS.
"""

from collections.abc import Sequence
from html import escape


def line_html(line: str) -> str:
    return (
        f"<div class='pasted'><code tabindex='0'>{escape(line)}</code>"
        "<button type='button' class='copy' aria-live='polite'>Copy</button></div>"
    )


def lines_html(lines: Sequence[tuple[str, str]]) -> str:
    """Each below a word about it."""
    return "".join(f"<p class='about quiet small'>{escape(about)}</p>{line_html(line)}" for about, line in lines)
