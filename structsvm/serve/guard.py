"""The door of a server on this machine: who may ask, from where, and how much.

Any page that a browser shows may send requests to this machine. So the names by which a server is called are checked
(a foreign name that was made to point here, DNS rebinding, is refused), requests of pages of another origin are
refused, and where there are tokens, each request must have one.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANY = ("0.0.0.0", "::", "")  # noqa: S104 (compared with, not bound to)
MAX_BODY = 2**20
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Refused(Exception):
    """A request that is refused, with the status of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Guard:
    """Middleware that lets allowed requests through, with their body read and the name of their token in the state.

    Parameters
    ----------
    app : ASGI application
    host : str
        The address that the server is bound to.
    tokens : dict of str to str
        Names by tokens; empty: none is asked for.
    public : sequence of str
        Paths that need no token: they contain nothing but the program.
    max_body : int
        Bytes of a request, at most.
    larger : dict of str to int
        Bytes of requests of paths that may have more. One that has more is read and answered alone; others like it
        wait, since each may need much memory.
    names : sequence of str
        Further names by which the server may be called.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = LOOPBACK[0],
        tokens: Mapping[str, str] | None = None,
        public: Sequence[str] = (),
        max_body: int = MAX_BODY,
        larger: Mapping[str, int] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self.app, self.host, self.tokens = app, host, dict(tokens or {})
        self.public, self.max_body, self.names = public, max_body, names
        self.larger, self._one_large = dict(larger or {}), asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send)
        async with AsyncExitStack() as held:
            try:
                headers = Headers(scope=scope)
                self._check_host(headers)
                self._check_origin(headers)
                scope.setdefault("state", {})["by"] = self._name_of(scope, headers)
                most = self.larger.get(scope["path"], self.max_body)
                body = await self._body(headers, receive, most, held)
            except Refused as error:
                await JSONResponse({"error": str(error)}, error.status)(scope, receive, send)
                return
            await self.app(scope, _replay(body, receive), send)

    def _check_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        name = host_name(host)
        own = [self.host, *LOOPBACK, *self.names]
        is_address = False
        if not is_loopback(self.host):
            own.append(socket.gethostname())
            is_address = self.host in ANY and _is_address(name)
        if not (is_address or name in map(str.lower, own)):
            raise Refused(421, f"this server is not called {host!r:.100}")

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{headers.get('host')}", f"https://{headers.get('host')}"):
            raise Refused(403, f"a page of {origin!r:.100} may not ask this server")
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            raise Refused(403, "a page of another site may not ask this server")

    def _name_of(self, scope: Scope, headers: Headers) -> str | None:
        """The name that the request's token stands for."""
        if not self.tokens or scope["path"] in self.public:
            return None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            given = _password(given)
        elif scope["method"] == "GET" and not kind:
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        for token, name in self.tokens.items():
            if hmac.compare_digest(token.encode(), given.strip().encode("utf-8", "replace")):
                return name
        raise Refused(401, "the token is missing or wrong: open the address that the command printed")

    async def _body(self, headers: Headers, receive: Receive, most: int, held: AsyncExitStack) -> bytes:
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", length) or int(length) > most:
            raise Refused(413, f"a request has at most {most} bytes")
        body, is_held = bytearray(), False
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return bytes(body)
            body += message.get("body", b"")
            if len(body) > most:
                raise Refused(413, f"a request has at most {most} bytes")
            if len(body) > self.max_body and not is_held:
                await held.enter_async_context(self._one_large)
                is_held = True
            if not message.get("more_body"):
                return bytes(body)


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own, which no other machine reaches."""
    return host in LOOPBACK or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def host_name(host: str) -> str:
    """The name in a Host header, in small letters, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _password(given: str) -> str:
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, no ASCII, or no UTF-8
        return ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once; after that, whatever else comes."""
    waiting = [body]

    async def receiving() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return receiving
