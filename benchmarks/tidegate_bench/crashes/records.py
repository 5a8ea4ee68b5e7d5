"""What the devices know, in a file that outlives everything: what they sent, and when it was acknowledged.

One record a line, appended and never changed::

    S TAB device TAB boot TAB seq TAB payload LF        before it is sent for the first time
    A TAB device TAB boot TAB seq TAB Unix time LF      when its acknowledgement came

A record counts only with its line feed. A reading that is sent again, on purpose or not, has one S and several A.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tidegate.devices.acknowledgements import AckFile

SUFFIX = ".records"


class Identity(NamedTuple):
    device: str
    boot: int
    seq: int


class Known(NamedTuple):
    """Everything the devices know. ``acknowledged`` has the first and the last time of each."""

    sent: dict[Identity, dict[str, Any]]
    acknowledged: dict[Identity, tuple[float, float]]
    acknowledgements: int


class RecordFile(AckFile):
    """The writer; a publisher takes it for the file of its acknowledgements."""

    def sent(self, device: str, boot: int, seq: int, payload: str) -> None:
        """On disk, as far as this process can see to that, before it is sent."""
        self._collected.append(f"S\t{device}\t{boot}\t{seq}\t{payload}\n")
        self.flush()

    def append(self, device: str, boot: int, seq: int) -> None:
        self._collected.append(f"A\t{device}\t{boot}\t{seq}\t{time.time():.6f}\n")


def read(path: Path) -> Known:
    known = Known({}, {}, 0)
    acknowledgements = 0
    for kind, identity, rest in _records(path):
        if kind == "S":
            known.sent[identity] = json.loads(rest)
        else:
            acknowledgements += 1
            first_s, _ = known.acknowledged.get(identity, (float(rest), 0.0))
            known.acknowledged[identity] = (first_s, float(rest))
    return known._replace(acknowledgements=acknowledgements)


def _records(path: Path) -> Iterator[tuple[str, Identity, str]]:
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        kind, device, boot, seq, rest = line.split("\t", 4)
        yield kind, Identity(device, int(boot), int(seq)), rest
