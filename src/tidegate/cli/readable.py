"""One document that is damaged must not hide all that a command has to show besides."""

from typing import TypeVar

import typer

from tidegate.bus.client import Bus
from tidegate.bus.documents import Document
from tidegate.model.errors import DamagedDocumentError

T = TypeVar("T")


def readable(bus: Bus, document: Document[T], name: str = "") -> T | None:
    """The document, or None where there is none; also, with a line on standard error, where it is damaged."""
    try:
        return bus.get(document, name)
    except DamagedDocumentError as error:
        typer.echo(f"ALARM: {error}", err=True)
        return None
