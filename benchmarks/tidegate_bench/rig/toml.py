"""Settings as a TOML file has them."""

import json
from collections.abc import Mapping
from typing import Any


def to_toml(value: Any) -> str:
    """One value in one line. Text, numbers, truth and lists are written as in JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {to_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_toml(part) for part in value) + "]"
    return json.dumps(value)
