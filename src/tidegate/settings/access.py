"""Access files: YAML, what devices and applications may do, checked as a whole before gateways go by it."""

from tidegate.model.errors import UserError
from tidegate.model.identity import Access
from tidegate.settings import reading
from tidegate.settings.located import Located

LENGTH_MAX = 250_000  # as a document on the control bus it has to fit into one message


def read(text: str, name: str) -> Access | None:
    """What a text says; ``name`` is what people call it. None where it says nothing."""
    if len(text) > LENGTH_MAX:
        raise too_long(name)
    document = Located(text, name)
    if document.values is None:
        return None
    if not isinstance(document.values, dict):
        shown = reading.show(document.values)
        raise UserError(f"{document.place(())}: that is {shown}: access has the keys devices and applications.")
    return reading.read(document.values, Access, document.place, reading.YAML)


def too_long(name: str) -> UserError:
    return UserError(f"{name} is longer than {LENGTH_MAX:,} characters: name devices by how they begin, like pump-*.")
