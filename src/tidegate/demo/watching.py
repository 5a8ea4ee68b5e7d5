"""Looking at a running installation and switching its protection, over the same API that the dashboard uses."""

import http.client
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.model.decisions import Mode
from tidegate.model.errors import TidegateError
from tidegate.model.view import View

TIMEOUT_S = 2.0


class Window:
    """Asks the controllers in turn; one that does not answer is passed over."""

    def __init__(self, addresses: Sequence[tuple[str, int]], token: str) -> None:
        self._addresses = list(addresses)
        self._token = token

    def view(self) -> View | None:
        """What the first controller that answers sees; None while none does."""
        answer = self._ask("GET", "/api/view")
        return None if answer is None else msgspec.json.decode(answer, type=View)

    def set_mode(self, mode: Mode) -> None:
        self._insist("/api/mode", msgspec.to_builtins(mode))

    def remember(self, from_s: float, to_s: float) -> None:
        """Keep this stretch of time as the run to compare with: the dashboard draws it in grey."""
        self._insist("/api/past", {"from_s": from_s, "to_s": to_s})

    def _insist(self, path: str, document: dict[str, Any]) -> None:
        if self._ask("PUT", path, json.dumps(document)) is None:
            raise TidegateError("No controller answers: see the controllers' logs in the state directory.")

    def _ask(self, method: str, path: str, body: str | None = None) -> bytes | None:
        for address in list(self._addresses):
            connection = http.client.HTTPConnection(*address, timeout=TIMEOUT_S)
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                content = response.read()
                if response.status < 400:
                    return content
            except (OSError, http.client.HTTPException):
                # The one that answers is asked first the next time.
                self._addresses.append(self._addresses.pop(0))
            finally:
                connection.close()
        return None
