"""How many processing nodes shall run: one small document that whoever starts nodes follows."""

from typing import Annotated

import msgspec


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """A wish, not a count: nodes take seconds to start, and who starts them has a limit of its own."""

    nodes_wanted: Annotated[int, msgspec.Meta(ge=1)]
