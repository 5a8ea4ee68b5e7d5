"""Results as JSON, whichever library their numbers come from."""

from typing import Any

import msgspec


def to_json(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=_plain).decode()


def _plain(value: Any) -> Any:
    """Numbers of numpy and pyarrow as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "as_py"):
        return value.as_py()
    raise NotImplementedError(f"a {type(value).__name__} in a report")
