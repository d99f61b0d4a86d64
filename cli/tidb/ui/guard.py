"""The door of the page: only the browser of the user who started it comes in.

Other users of this machine reach the port, and so can other sites in the user's browser. Each request therefore needs
the token: once in the address, then in a cookie that other sites cannot send or read. A foreign `Host` is a name
that another site resolves to loopback (DNS rebinding); a foreign `Origin` is a request made by another site.
"""

import hmac
from collections.abc import Mapping
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"  # noqa: S105 - the parameter's name

_HEADERS: Mapping[str, str] = {
    # nothing from other hosts, no script or style in the page itself, and no frame around it
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # with `no-referrer`, browsers send `Origin: null` with a form
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI app that admits requests to another one, and adds the headers that restrict the browser."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        """`port` is where the server listens."""
        self._app = app
        self._token = token
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # cookies know no ports: servers on other ports keep theirs
        self._cookie = f"tidb-ui-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def restricted(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, restricted)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that does not come in; None if it does."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self._hosts:
            return _refused(f"this server is not {host}; open the address that `kubectl tidb ui` has printed")
        # browsers send it with each write
        if origin is None and request.method not in ("GET", "HEAD"):
            return _refused("a write without an Origin")
        if origin is not None and origin != f"http://{host}":
            return _refused(f"requests of {origin} are refused")
        if request.query_params.get(TOKEN) is not None:
            return self._welcome(request)
        if not self._is_token(request.cookies.get(self._cookie, "")):
            return _refused("open the address that `kubectl tidb ui` has printed: its token is missing here")
        return None

    def _welcome(self, request: Request) -> Response:
        """Move the token from the address, which a browser keeps in its history, to a cookie."""
        if not self._is_token(request.query_params[TOKEN]):
            return _refused("the token is another one; open the address that `kubectl tidb ui` has printed last")
        answer = RedirectResponse(request.url.path, HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
        return answer

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token.encode())


def _refused(why: str) -> Response:
    return PlainTextResponse(f"Refused: {why}.\n", HTTPStatus.FORBIDDEN)
