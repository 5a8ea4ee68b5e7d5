"""Topic filters of MQTT 3.1.1: ``+`` is any one level, ``#`` at the end is any number of them.

An operator's filters are few and matched often: they are compiled once. A device's may be many, and thousands of
compiled ones would take too much memory: ``filter_index`` has those.
"""

import re

from tidegate.mqtt.fields import TEXT_BYTES_MAX

_ONE_LEVEL, _REST = "+", "#"


def compile_filter(text: str) -> re.Pattern[bytes]:
    """What matches (``fullmatch``) the topics of a filter; ValueError where MQTT knows no such filter."""
    levels = text.split("/")
    if not text or "\0" in text or len(text.encode()) > TEXT_BYTES_MAX:
        raise ValueError(f"it has to have 1 to {TEXT_BYTES_MAX:,} bytes without NUL")
    if _REST in levels[:-1]:
        raise ValueError("# has to be its last level")
    if any(len(level) > 1 and (_ONE_LEVEL in level or _REST in level) for level in levels):
        raise ValueError("+ and # have to be whole levels")
    has_rest = levels[-1] == _REST
    fixed = b"/".join(_level(level) for level in (levels[:-1] if has_rest else levels))
    # "a/#" is also the topic "a" itself.
    rest = (b".*" if len(levels) == 1 else b"(?:/.*)?") if has_rest else b""
    # Topics that begin with $ are a server's own: no wildcard stands for their first level.
    guard = rb"(?!\$)" if levels[0] in (_ONE_LEVEL, _REST) else b""
    return re.compile(guard + fixed + rest, re.DOTALL)


def _level(level: str) -> bytes:
    return b"[^/]*" if level == _ONE_LEVEL else re.escape(level.encode())
