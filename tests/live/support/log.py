"""The brokers' log as tests look at it: how far each slice is, and what it holds."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from tidegate.brokers.nats.backlog import spans
from tidegate.brokers.nats.ingest import open_for_traffic, slice_stream
from tidegate.bus.jetstream import ask, ask_all
from tidegate.bus.wire import Wire
from tidegate.model.installation import Installation

# So many requests are under way at once.
CHUNK = 500


class Log:
    """A look through a connection of its own, or through one that the test has anyway."""

    def __init__(self, here: Installation, wire: Wire | None = None) -> None:
        self._here = here
        self._slices = range(here.slices)
        self.wire = wire or Wire(here.data_urls)

    def __enter__(self) -> "Log":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.wire.close()

    def open_for_traffic(self) -> None:
        open_for_traffic(self.wire, self._here)

    def ends(self) -> dict[int, int]:
        """The last sequence of each slice."""
        return {slice_: span.last for slice_, span in spans(self.wire, self._slices).items()}

    def count(self) -> int:
        return sum(self.ends().values())

    def state(self, slice_: int) -> dict[str, Any]:
        found: dict[str, Any] = ask(self.wire, f"STREAM.INFO.{slice_stream(slice_)}")["state"]
        return found

    def messages(self, after: dict[int, int] | None = None) -> Iterator[tuple[str, bytes]]:
        """Device and payload of everything in every slice behind these offsets, copies included."""
        requests = []
        for slice_, last in self.ends().items():
            first = max(self.state(slice_)["first_seq"], (after or {}).get(slice_, 0) + 1)
            requests += [
                (f"STREAM.MSG.GET.{slice_stream(slice_)}", {"seq": sequence}) for sequence in range(first, last + 1)
            ]
        for begin in range(0, len(requests), CHUNK):
            for reply in ask_all(self.wire, requests[begin : begin + CHUNK]):
                message = reply["message"]
                yield message["subject"].split(".")[3], base64.b64decode(message.get("data", ""))

    def readings(self, after: dict[int, int] | None = None) -> list[tuple[str, dict[str, Any]]]:
        return [(device, json.loads(payload)) for device, payload in self.messages(after)]
