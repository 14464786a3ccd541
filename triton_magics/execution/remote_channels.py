"""The ways to a host of jobs: a process of the user's own ssh, or HTTP (`http_channel`)."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from triton_magics.config import Settings
from triton_magics.errors import BadValue, Unavailable
from triton_magics.execution.frame_stream import FrameStream
from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import (
    Attach,
    Attached,
    ConnectionState,
    Leave,
    RemoteStream,
    package_version,
)
from triton_magics.execution.resumable import RECONNECT_S, ResumableStream

SSH, HTTPS, HTTP = "ssh://", "https://", "http://"
SCHEMES = (SSH, HTTPS, HTTP)
_HOST = re.compile(r"(?:[\w.-]+@)?[A-Za-z0-9_][\w.-]*(?::\d{1,5})?")
_SSH = (
    "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
    "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
)  # fmt: skip
CONNECT_S = 30.0
FIRST_PAUSE_S, LAST_PAUSE_S = 0.2, 10.0  # between two tries to connect again
LEAVE_S = 1.0
END_S = 2.0


def ssh_command(url: str) -> list[str]:
    """Return the command for `ssh://box`, `ssh://me@box:2222`.

    Raises:
        BadValue: no such url.
    """
    place = url.removeprefix(SSH).rstrip("/")
    if not url.startswith(SSH) or not _HOST.fullmatch(place):
        raise BadValue(f"engine = {url!r}: write ssh://HOST, or ssh://USER@HOST:PORT")
    host, _, port = place.partition(":")
    return ["ssh", *_SSH, *(["-p", port] if port else []), host, "triton-magics", "executor"]


def channel_factory(url: str, settings: Settings) -> Callable[[], Channel]:
    """Return a function that opens a way to a host.

    Args:
        url: `ssh://box`, `https://box:8000`.
        settings: name the file of the token.

    Raises:
        BadValue: no such url.
    """
    if url.startswith(SSH):
        command = ssh_command(url)
        name = url.removeprefix(SSH).rstrip("/")
        return lambda: ProcessChannel(command, name)
    from triton_magics.execution import http_channel  # on use: httpx is an extra

    address = http_channel.check_address(url)
    return lambda: http_channel.HttpChannel(address, settings)


class Channel(Protocol):
    """A way to a host.

    Attributes:
        stream: of its frames.
    """

    stream: RemoteStream

    @property
    def problem(self) -> str:
        """Why the session ended; empty while it goes on, and where it was closed here."""

    def last_error(self) -> str:
        """Return the last line that the way there reported; empty if there is none."""

    def close(self) -> None:
        """Close both; a second time does nothing."""


class Link:
    """A process whose stdin and stdout lead to a host: ssh.

    Args:
        command: its argv.

    Raises:
        Unavailable: it can't be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `end`)
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._errors, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._errors.close()
            raise Unavailable(f"{command[0]} can't be started: {error.strerror}") from error
        assert self._process.stdin
        assert self._process.stdout
        self._pipes = (self._process.stdin, self._process.stdout)
        self.frames = FrameStream(self._process.stdout.fileno(), self._process.stdin.fileno())
        self._ending = threading.Lock()

    def attach(self, session: str, after: int) -> Attached | None:
        """Exchange the first frames; return None where there is no answer."""
        timer = threading.Timer(CONNECT_S, self.kill)
        timer.start()
        try:
            self.frames.send(Attach(version=package_version(), session=session, after=after))
            answer = self.frames.receive()
        except (OSError, ProtocolError):
            answer = None
        finally:
            timer.cancel()
        return answer if isinstance(answer, Attached) else None

    def last_error(self) -> str:
        """Return the last line of its stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with self._ending:
            if self._errors.closed:
                return ""
            self._errors.seek(0)
            text = self._errors.read()[-4096:].decode(errors="replace")
        return (text.strip().splitlines() or [""])[-1]

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

    def end(self, wait_s: float = 0.0) -> None:
        """Close the pipes, and end the process if it goes on; a second time does nothing."""
        self.frames.close()
        with self._ending:
            for pipe in self._pipes:
                with contextlib.suppress(OSError):
                    pipe.close()
            try:
                self._process.wait(wait_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._errors.close()


class ProcessChannel:
    """A session of a host, by one process after the other: ssh, and ssh again once it is lost.

    Args:
        command: argv of the process.
        name: of the host, for messages.
        start: starts the process.

    Raises:
        Unavailable: it can't be started, does not lead there, or to another version.
    """

    def __init__(
        self, command: Sequence[str], name: str, start: Callable[[Sequence[str]], Link] = Link
    ) -> None:
        self._command, self._name, self._start = tuple(command), name, start
        self._session = uuid.uuid4().hex
        self._closing = threading.Event()
        self.problem = ""
        self._frames = ResumableStream(self._reconnect)
        self.stream: RemoteStream = self._frames
        try:
            self._link, answer = self._open()
        except Unavailable:
            self._frames.close()
            raise
        self._frames.attach(self._link.frames, answer.after)

    def _open(self) -> tuple[Link, Attached]:
        """Start a process, and name the session to the host.

        Raises:
            Unavailable: there is no way there, or another version.
        """
        link = self._link = self._start(self._command)
        answer = link.attach(self._session, self._frames.n_received)
        if answer is None:
            detail = link.last_error() or "it sent no answer"
            link.end()
            raise Unavailable(f"no connection to {self._name}: {detail}")
        if answer.version != package_version():
            link.end()
            raise Unavailable(version_problem(self._name, answer.version))
        return link, answer

    def _reconnect(self, lost: FrameStream) -> None:
        """Go on with the session over a new process; end it where that takes too long."""
        self._link.end()
        self._frames.insert(ConnectionState(is_connected=False))
        until, pause_s = time.monotonic() + RECONNECT_S, FIRST_PAUSE_S
        while not self._closing.is_set() and time.monotonic() < until:
            try:
                link, answer = self._open()
            except Unavailable as error:
                self.problem = str(error)
                self._closing.wait(pause_s)
                pause_s = min(2 * pause_s, LAST_PAUSE_S)
                continue
            if self._closing.is_set():
                link.end()
                break
            if not answer.is_known or not self._frames.can_resume(answer.after):
                self.problem = f"{self._name} does not know the session any more"
                link.end()
                break
            self._frames.insert(ConnectionState(is_connected=True))
            self._frames.attach(link.frames, answer.after)
            return
        self._frames.close()

    def last_error(self) -> str:
        """Return why the session ended, or the last line that the process reported."""
        return self.problem or self._link.last_error()

    def close(self) -> None:
        """Leave the session, so that it ends there; a second time does nothing."""
        self._closing.set()
        with contextlib.suppress(OSError):
            self._frames.send(Leave())
        self._frames.close(LEAVE_S)
        self._link.end(END_S)


def version_problem(name: str, theirs: str) -> str:
    """Return the message on a host of another version."""
    return (
        f"{name} has triton_magics {theirs}, this is {package_version()}: "
        "install the same version on both sides"
    )


__all__ = ["SCHEMES", "Channel", "ProcessChannel", "channel_factory", "ssh_command"]
