"""Somebody's own service that knows who is who, for the method ``http``; it can be told to answer nobody any more."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tidegate.machine.ports import HOST


class Account(NamedTuple):
    password: str
    expires_s: float | None = None  # Unix time


class AccountService(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__((HOST, 0), _Who)
        self.accounts: dict[str, Account] = {}
        self.awake = threading.Event()
        self.awake.set()
        self.asked = 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/who"

    def answer(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.asked += 1
        account = self.accounts.get(asked["user"])
        if account is None:
            return 404, {}
        if asked["password"] != account.password:
            return 401, {}
        ends = {} if account.expires_s is None else {"expires_s": account.expires_s}
        return 200, {"name": asked["user"], **ends}

    def handle_error(self, _request: Any, _address: Any) -> None:
        """A gateway that has waited long enough hangs up: no more is to be said of it."""


class _Who(BaseHTTPRequestHandler):
    server: AccountService
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.awake.wait()
        status, said = self.server.answer(asked)
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Passwords are asked here: nothing is logged."""


@contextmanager
def account_service() -> Iterator[AccountService]:
    with AccountService() as service:
        serving = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving.start()
        try:
            yield service
        finally:
            service.awake.set()
            service.shutdown()
            serving.join()
