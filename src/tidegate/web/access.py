"""The token in front of every route: pages, API, metrics, web sockets and static files alike.

``Authorization: Bearer …`` serves programs. A browser brings ``?token=…`` once and gets a cookie. The cookie is derived
from the token, because browsers send it to every port of a host, and servers there must not learn the token itself.
Its name is derived as well, so that two installations on one host do not disturb each other.
"""

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

WHERE_THE_KEY_IS = (
    "Tidegate needs its token: it is in installation.json of the state directory, and 'tidegate up' prints the "
    "dashboard's address with it.\n"
)
OTHER_ORIGIN = "This request comes from another site's page: open the dashboard at its own address.\n"
# Nothing is fetched from elsewhere, whatever a page asks for. Vue compiles its templates, hence 'unsafe-eval'.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'self'"
)
_HEADERS = {"content-security-policy": _POLICY, "referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}


class TokenGate:
    """An ASGI application around another: lets a request through that brings the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie_name = f"tidegate-{hashlib.sha256(self._token).hexdigest()[:8]}"
        self._cookie = hmac.new(self._token, b"tidegate dashboard cookie", hashlib.sha256).hexdigest().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        offered = _offered_token(scope, headers)
        if not (self._cookie_matches(headers) if offered is None else self._matches(offered)):
            await _refuse(WHERE_THE_KEY_IS, 401, scope, receive, send)
        elif scope["type"] == "http" and _query(scope).get("token") is not None:
            await self._welcome(scope)(scope, receive, send)
        elif offered is None and _changes(scope) and not _same_origin(headers):
            await _refuse(OTHER_ORIGIN, 403, scope, receive, send)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _matches(self, offered: str) -> bool:
        return hmac.compare_digest(offered.encode(), self._token)

    def _cookie_matches(self, headers: Headers) -> bool:
        try:
            given = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return given is not None and hmac.compare_digest(given.value.encode(), self._cookie)

    def _welcome(self, scope: Scope) -> RedirectResponse:
        """Set the cookie and lead to the same address without the token."""
        rest = {key: value for key, value in _query(scope).items() if key != "token"}
        # One leading slash: two would name another host.
        clean = "/" + scope["path"].lstrip("/") + ("?" + urlencode(rest) if rest else "")
        response = RedirectResponse(clean, status_code=303, headers={**_HEADERS, "cache-control": "no-store"})
        response.set_cookie(
            self._cookie_name,
            self._cookie.decode(),
            httponly=True,
            samesite="strict",
            secure=scope.get("scheme") == "https",
        )
        return response


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


def _offered_token(scope: Scope, headers: Headers) -> str | None:
    """The token that the request names itself, right or wrong; None leaves it to the cookie."""
    kind, _, bearer = headers.get("authorization", "").partition(" ")
    return bearer.strip() if kind.lower() == "bearer" else _query(scope).get("token")


def _changes(scope: Scope) -> bool:
    return scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")


def _same_origin(headers: Headers) -> bool:
    """Cookies know no ports, so a page of another port of this host would count as the same site. It is not ours."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return send_with_headers


async def _refuse(sentence: str, status: int, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "token wanted"})
        return
    headers = {**_HEADERS, "www-authenticate": "Bearer"} if status == 401 else _HEADERS
    await PlainTextResponse(sentence, status_code=status, headers=headers)(scope, receive, send)
