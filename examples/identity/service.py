"""A service that knows who is who, for the method ``http``: replace ``PEOPLE`` by your own accounts.

python examples/identity/service.py 8099
"""

import hmac
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PEOPLE = {"pump-1": "one-secret", "lab": "another-secret"}


class Who(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user = asked["user"]
        if user not in PEOPLE:
            self.answer(404, {})
        elif not hmac.compare_digest(PEOPLE[user].encode(), (asked["password"] or "").encode()):
            self.answer(401, {})
        elif user == "lab":  # may do something else than devices may
            self.answer(200, {"name": user, "publishes": ["lab/#"], "subscribes": ["lab/#"]})
        else:
            self.answer(200, {"name": user})

    def answer(self, status: int, body: dict[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Passwords are asked here: nothing is logged."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8099), Who).serve_forever()
