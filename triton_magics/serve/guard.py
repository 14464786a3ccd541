"""The middleware in front of every route: refuse what is not a client of this server.

The order of refusals is fixed: 400 for ambiguous headers, 401 token, 421 Host, 403 Origin, 405
method, 415 content type, 413 size, 408 time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple

from h11 import LocalProtocolError

from triton_magics.serve.job_model import Caller
from triton_magics.serve.options import LOOPBACK, ServeOptions
from triton_magics.serve.tokens import Tokens

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

METHODS = ("GET", "POST", "DELETE")
BODY_S = 30.0  # time for the whole body
GUESSES, GUESS_S = 10, 60.0  # wrong tokens of one address
MAX_ADDRESSES = 1_000
PUBLIC = "/healthz"  # says nothing but that the server runs; for probes, which have no token
_ONCE = (b"host", b"authorization", b"content-length", b"content-type", b"origin", b"x-session-id")
_SESSION = re.compile(r"[A-Za-z0-9_.-]{0,64}")
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_LOG = logging.getLogger("triton_magics.serve.access")


class HttpRefusal(NamedTuple):
    """A response that refuses a request."""

    status: int
    error: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Guesses:
    """Counts the wrong tokens of each address, and says when there are too many."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def is_too_many(self, address: str, now: float) -> bool:
        """Count a wrong token of an address; return True where it had too many lately."""
        times = self._times.setdefault(address, deque(maxlen=GUESSES))
        self._times.move_to_end(address)
        while len(self._times) > MAX_ADDRESSES:
            self._times.popitem(last=False)
        too_many = len(times) == GUESSES and now - times[0] < GUESS_S
        times.append(now)
        return too_many


class Guard:
    """Checks token, Host, Origin, method, content type and size before the application.

    The caller is in `scope["state"]["caller"]` after that. A body is read whole, so no route sees
    more bytes than are allowed.

    Args:
        app: the application.
        options: allowed hosts, origins and sizes.
        tokens: of the clients; None: no token is asked for.
    """

    def __init__(self, app: App, options: ServeOptions, tokens: Tokens | None) -> None:
        self._app = app
        self._options = options
        self._tokens = tokens
        self._guesses = Guesses()

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document of the application."""
        document: dict[str, Any] = self._app.openapi()  # type: ignore[attr-defined]
        return document

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)
        else:  # there are no websockets
            await send({"type": "websocket.close", "code": 1008})

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        log = _Logged(send)
        try:
            refusal = self._check(scope)
            if refusal is None:
                body, refusal = await self._read(scope, receive)
            if refusal:
                with suppress(LocalProtocolError):  # uvicorn has refused the request already
                    await _refuse(log, refusal)
            elif scope["path"] == PUBLIC:
                await _answer(log, 200, {"status": "ok"})
            else:
                await self._app(scope, _replay(body, receive), log)
        finally:
            _log_request(scope, log.status, time.monotonic() - started)

    # ----------------------------------------------------------------------------------- checks

    def _check(self, scope: Scope) -> HttpRefusal | None:
        headers = Headers(scope["headers"])
        if headers.is_ambiguous:
            return HttpRefusal(400, "BadHeaders", "a header is given twice, or two contradict")
        if scope["path"] == PUBLIC and scope["method"] == "GET":
            return None
        if scope["path"].startswith("/.well-known/"):
            return HttpRefusal(404, "NotFound", "there is nothing here")
        checks = (self._check_token, self._check_host, self._check_origin, self._check_method)
        for check in (*checks, self._check_type):
            if refusal := check(scope, headers):
                return refusal
        return None

    def _check_token(self, scope: Scope, headers: Headers) -> HttpRefusal | None:
        scheme, _, token = headers.bytes("authorization").partition(b" ")
        client: str | None = "anonymous"
        if self._tokens is not None:
            is_bearer = scheme.lower() == b"bearer"
            client = self._tokens.client_of(token.strip() if is_bearer else b"")
        if client is not None:
            session = headers.text("x-session-id")
            session = session if _SESSION.fullmatch(session) else ""
            scope.setdefault("state", {})["caller"] = Caller(client, session)
            return None
        address = (scope.get("client") or ("",))[0]
        if self._guesses.is_too_many(address, time.monotonic()):
            retry = ((b"retry-after", b"60"),)
            return HttpRefusal(429, "TooManyGuesses", "too many wrong tokens; wait a minute", retry)
        realm = ((b"www-authenticate", b'Bearer realm="triton-magics"'),)
        text = "send the header Authorization: Bearer TOKEN"
        if token:
            text = "the token is none of this server's; its start names their file"
        return HttpRefusal(401, "Unauthorized", text, realm)

    def _check_host(self, scope: Scope, headers: Headers) -> HttpRefusal | None:
        host = _host_name(headers.text("host"))
        names = (*LOOPBACK, *self._options.allowed_hosts, self._options.host)
        if host in names or (not self._options.is_loopback and _is_address(host)):
            return None
        return HttpRefusal(421, "WrongHost", "this server has no such name; see --allow-host")

    def _check_origin(self, scope: Scope, headers: Headers) -> HttpRefusal | None:
        origin = headers.text("origin")
        if not origin or origin in self._options.allowed_origins:
            return None
        return HttpRefusal(403, "WrongOrigin", "pages of this Origin may not call the server")

    def _check_method(self, scope: Scope, headers: Headers) -> HttpRefusal | None:
        if scope["method"] in METHODS:
            return None
        allow = ((b"allow", ", ".join(METHODS).encode()),)
        return HttpRefusal(405, "WrongMethod", f"the methods are {', '.join(METHODS)}", allow)

    def _check_type(self, scope: Scope, headers: Headers) -> HttpRefusal | None:
        has_length = headers.text("content-length") not in ("", "0")
        if not has_length and not headers.has("transfer-encoding"):
            return None
        kind = headers.text("content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            return HttpRefusal(415, "WrongType", "send JSON, with Content-Type: application/json")
        if headers.text("content-encoding").lower() not in ("", "identity"):
            return HttpRefusal(415, "WrongEncoding", "send the body without a Content-Encoding")
        return None

    async def _read(self, scope: Scope, receive: Receive) -> tuple[bytes, HttpRefusal | None]:
        """Return the body, or why it is refused."""
        most = self._options.max_body_bytes
        too_large = HttpRefusal(413, "TooLarge", f"a request may have {most} bytes")
        declared = Headers(scope["headers"]).text("content-length") or "0"
        if not declared.isdecimal() or len(declared) > 15 or int(declared) > most:
            return b"", too_large
        try:
            body = await asyncio.wait_for(_body(receive, most), BODY_S)
        except TimeoutError:
            return b"", HttpRefusal(408, "TooSlow", f"the body did not arrive in {BODY_S:g} s")
        return (b"", too_large) if body is None else (body, None)


class Headers:
    """The headers of a request."""

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self._pairs = pairs

    def bytes(self, name: str) -> bytes:
        """Return the value of a header; empty where there is none."""
        return next((value for key, value in self._pairs if key == name.encode()), b"")

    def text(self, name: str) -> str:
        """Return the value of a header as text; empty where there is none."""
        return self.bytes(name).decode("latin-1")

    def has(self, name: str) -> bool:
        """Return True where the header is given."""
        return any(key == name.encode() for key, _ in self._pairs)

    @property
    def is_ambiguous(self) -> bool:
        """True where two servers could read the request in two ways."""
        counts = Counter(key for key, _ in self._pairs)
        both = counts[b"content-length"] and counts[b"transfer-encoding"]
        return bool(both) or any(counts[name] > 1 for name in _ONCE)


def _host_name(host: str) -> str:
    """Return the host without its port: `localhost` of `localhost:8000`, `::1` of `[::1]:80`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(host: str) -> bool:
    """Return True for an IP address, which no rebinding of a name reaches."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------------------ body and answer


async def _body(receive: Receive, most: int) -> bytes | None:
    """Return the whole body; None where it is larger than `most` bytes."""
    parts = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(parts)
        parts += message.get("body", b"")
        if len(parts) > most:
            return None
        if not message.get("more_body"):
            return bytes(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body, then the events of the connection."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return next_message


class _Logged:
    """A `send` that adds headers to each response and remembers its status."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {key for key, _ in message.get("headers", ())}
            more = [pair for pair in _HEADERS if pair[0] not in names]
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await self._send(message)


async def _refuse(send: Send, refusal: HttpRefusal) -> None:
    content = {"error": refusal.error, "message": refusal.message, "status": "client_error"}
    await _answer(send, refusal.status, content, refusal.headers)


async def _answer(
    send: Send, status: int, content: object, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    body = json.dumps(content).encode()
    basic = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*basic, *headers]})
    await send({"type": "http.response.body", "body": body})


def _log_request(scope: Scope, status: int, seconds: float) -> None:
    caller = scope.get("state", {}).get("caller")
    facts = {
        "method": scope["method"][:16],
        "path": scope["path"][:200],
        "status": status,
        "duration_ms": round(1e3 * seconds, 1),
        "client": caller.name if caller else None,
        "address": (scope.get("client") or ("",))[0],
    }
    _LOG.info("request", extra=facts)


__all__ = ["Guard"]
