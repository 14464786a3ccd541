"""The way to a host of jobs by HTTP: frames of a session that survives a lost connection.

Frames to the host are requests, each with its number; frames from it are lines of one long
response. When a connection is lost, the session and its jobs go on there; this side asks for the
frames after the last one that it has. Needs httpx (extra `client`).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from triton_magics.config import Settings
from triton_magics.errors import BadValue, Unavailable
from triton_magics.execution.remote_frames import (
    ConnectionState,
    EndOfJob,
    RemoteFrame,
    RemoteStream,
    SubmitJob,
    read_frame,
)
from triton_magics.execution.resumable import RECONNECT_S
from triton_magics.line_splitter import LineSplitter

SESSIONS = "/v1/executor/sessions"
TOKEN = "TRITON_MAGICS_TOKEN"  # noqa: S105 (the variable's name)
CONNECT_S = 10.0
SILENCE_S = 10.0  # the host sends a line each second
PAUSE_S = 0.5  # between two tries
LEAVE_S = 2.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_KINDS = {413: "BadValue", 422: "BadValue", 503: "Unavailable"}


def check_address(url: str) -> str:
    """Return the url without a slash at its end.

    Raises:
        BadValue: it is no address of a server, or would send the token in clear text.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        port, host = None, None
        parts = urlsplit("")
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not host or not is_plain or port == 0:
        raise BadValue(f"engine = {url!r}: write ssh://HOST or https://HOST:PORT")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise BadValue(
            f"engine = {url!r}: http would send the token in clear text. Write https://{host}, "
            f"or ssh -L 8000:localhost:8000 {host} and http://localhost:8000"
        )
    return url.rstrip("/")


def read_token(token_file: str, environment: os._Environ[str] | dict[str, str]) -> str:
    """Return the token of a file, of TRITON_MAGICS_TOKEN, or of the user's own file; "" for none.

    A file has the token, or a name and the token as a server writes it, in its first line.

    Raises:
        BadValue: the file can't be read, or others can read it.
    """
    if not token_file and (token := environment.get(TOKEN, "").strip()):
        return token
    base = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(token_file).expanduser() if token_file else Path(base) / "triton-magics" / "tokens"
    if not token_file and not path.exists():
        return ""
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadValue(f"the token file {path} can't be read: {error}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise BadValue(f"other users can read the token file: chmod 600 {path}")
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    return first.split()[-1] if first.strip() else ""


class HttpChannel:
    """A session of a server that runs jobs.

    Args:
        address: `https://box:8000`, checked.
        settings: name the file of the token.

    Raises:
        Unavailable: httpx is not installed.
        BadValue: the token can't be read.
    """

    def __init__(self, address: str, settings: Settings) -> None:
        try:
            import httpx
        except ImportError as error:
            raise Unavailable(
                "httpx is not installed: pip install 'triton-magics[client]'"
            ) from error
        token = read_token(settings.token_file, os.environ)
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        client = httpx.Client(base_url=address, headers=headers, timeout=timeout)
        self._stream = HttpStream(client)
        self.stream: RemoteStream = self._stream

    @property
    def problem(self) -> str:
        """Why the session ended."""
        return self._stream.problem

    def last_error(self) -> str:
        """Return why there is no connection; empty if that is not known."""
        return self.problem

    def close(self) -> None:
        """End the session; its jobs are cancelled."""
        self._stream.close()


class HttpStream:
    """Frames over HTTP requests of one session; `send` returns at once.

    Args:
        client: of httpx, with the address and the token; this closes it.

    Attributes:
        problem: why the session ended; empty while it goes on.
    """

    def __init__(self, client: Any) -> None:
        import httpx

        self._errors = (httpx.TransportError, httpx.StreamError)
        self._http = client
        self._outbox: SimpleQueue[RemoteFrame | None] = SimpleQueue()
        self._inbox: SimpleQueue[RemoteFrame | None] = SimpleQueue()
        self._closing = threading.Event()
        self._path = ""
        self._n_sent = 0
        self._response: Any = None
        self.problem = ""
        self._sender = threading.Thread(target=self._send_all, name="remote-send", daemon=True)
        self._reader = threading.Thread(target=self._read_all, name="remote-read", daemon=True)
        self._sender.start()

    # ------------------------------------------------------------------------------- the interface

    def send(self, frame: RemoteFrame) -> None:
        """Queue a frame.

        Raises:
            OSError: the session has ended.
        """
        if self._closing.is_set():
            raise OSError(self.problem or "the session is closed")
        self._outbox.put(frame)

    def receive(self) -> RemoteFrame | None:
        """Wait for a frame; None at the end of the session."""
        return self._inbox.get()

    def close(self) -> None:
        """End the session and the connections; a second time does nothing."""
        self._end()
        for thread in (self._sender, self._reader):
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join(LEAVE_S)
        self._http.close()

    def _end(self) -> None:
        if not self._closing.is_set():
            self._closing.set()
            self._outbox.put(None)
            self._inbox.put(None)
            self._wake_reader()

    def _wake_reader(self) -> None:
        """End a read that waits for the next line."""
        response = self._response
        if response is None:
            return
        stream = response.extensions.get("network_stream")
        connection = stream.get_extra_info("socket") if stream else None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _lose(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._end()

    # --------------------------------------------------------------------------------- to the host

    def _send_all(self) -> None:
        """Send the frames one after the other, then leave the session."""
        while (frame := self._outbox.get()) is not None:
            if self._path:
                self._post(frame)
            else:
                self._open(frame)
        if self._path:
            with contextlib.suppress(*self._errors):
                self._http.delete(self._path, timeout=LEAVE_S)

    def _open(self, hello: RemoteFrame) -> None:
        """Begin a session; nothing is tried again: a wrong address is an error at once."""
        try:
            response = self._http.post(SESSIONS, content=hello.model_dump_json())
        except self._errors as error:
            self._lose(str(error) or type(error).__name__)
            return
        if not response.is_success:
            self._lose(_refusal(response))
            return
        self._path = f"{SESSIONS}/{response.json()['session']}"
        self._reader.start()

    def _post(self, frame: RemoteFrame) -> None:
        """Send a frame until it has arrived; its number tells the host of a repetition."""
        self._n_sent += 1
        content, query = frame.model_dump_json(), {"number": self._n_sent}
        lost_at: float | None = None
        while True:
            try:
                response = self._http.post(f"{self._path}/frames", content=content, params=query)
            except self._errors as error:
                lost_at = lost_at or time.monotonic()
                if self._closing.is_set() or time.monotonic() - lost_at > RECONNECT_S:
                    self._lose(str(error) or type(error).__name__)
                    return
                self._closing.wait(PAUSE_S)
                continue
            self._note(frame, response)
            return

    def _note(self, frame: RemoteFrame, response: Any) -> None:
        """End the job of a frame that the host refuses."""
        if response.is_success:
            return
        problem = _refusal(response)
        if response.status_code in (401, 404):
            self._lose(problem)
        elif isinstance(frame, SubmitJob):
            kind = _KINDS.get(response.status_code, "Unavailable")
            self._inbox.put(EndOfJob(id=frame.id, error=kind, message=problem))

    # ------------------------------------------------------------------------------- from the host

    def _read_all(self) -> None:
        """Read frames until the session ends; connect again where the connection is lost."""
        newest, lost_at = 0, 0.0
        while not self._closing.is_set():
            problem = "the connection ended"
            try:
                for number, body in self._lines(newest):
                    if lost_at:
                        self._inbox.put(ConnectionState(is_connected=True))
                    newest, lost_at = number, 0.0
                    if body is None:
                        self._lose("the server ended the session")
                        return
                    self._inbox.put(read_frame(json.dumps(body)))
            except _Refused as refused:
                self._lose(str(refused))
                return
            except (*self._errors, ValueError, OSError) as error:
                problem = str(error) or type(error).__name__
            if not lost_at:
                lost_at = time.monotonic()
                self._inbox.put(ConnectionState(is_connected=False))
            if time.monotonic() - lost_at > RECONNECT_S:
                self._lose(problem)
                return
            self._closing.wait(PAUSE_S)

    def _lines(self, after: int) -> Any:
        """Yield the numbers and frames of one connection; a frame of None is the last."""
        query = {"after": after}
        with self._http.stream("GET", f"{self._path}/frames", params=query) as response:
            self._response = response
            if not response.is_success:
                response.read()
                raise _Refused(_refusal(response))
            splitter = LineSplitter()
            for chunk in response.iter_bytes():
                for line in filter(None, splitter.add(chunk)):
                    if self._closing.is_set():
                        return
                    value = json.loads(line)
                    yield value["number"], value["frame"]


class _Refused(Exception):
    """The host refuses to go on."""


def _refusal(response: Any) -> str:
    try:
        body = response.json()
    except ValueError:
        body = {}
    message = body.get("message") if isinstance(body, dict) else None
    if response.status_code == 404 and not message:
        message = "it has no executor: start this version of triton_magics as a server there"
    return str(message or f"HTTP {response.status_code}")


__all__ = ["HttpChannel", "HttpStream", "check_address", "read_token"]
