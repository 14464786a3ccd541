"""The ways to a host of jobs: a process of the user's own ssh, or HTTP (`http_channel`)."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from triton_magics.config import Settings
from triton_magics.errors import BadValue, Unavailable
from triton_magics.execution.remote_frames import FrameStream, RemoteStream

SSH, HTTPS, HTTP = "ssh://", "https://", "http://"
SCHEMES = (SSH, HTTPS, HTTP)
_HOST = re.compile(r"(?:[\w.-]+@)?[A-Za-z0-9_][\w.-]*(?::\d{1,5})?")
_SSH = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")


def ssh_command(url: str) -> list[str]:
    """Return the command for `ssh://box`, `ssh://me@box:2222`.

    Raises:
        BadValue: no such url.
    """
    place = url.removeprefix(SSH).rstrip("/")
    if not url.startswith(SSH) or not _HOST.fullmatch(place):
        raise BadValue(f"executor = {url!r}: write ssh://HOST, or ssh://USER@HOST:PORT")
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
        return lambda: ProcessChannel(command)
    from triton_magics.execution import http_channel  # on use: httpx is an extra

    address = http_channel.check_address(url)
    return lambda: http_channel.HttpChannel(address, settings)


class Channel(Protocol):
    """A way to a host.

    Attributes:
        stream: of its frames.
    """

    stream: RemoteStream

    def last_error(self) -> str:
        """Return the last line that the way there reported; empty if there is none."""

    def close(self) -> None:
        """Close both; a second time does nothing."""


class ProcessChannel:
    """A process whose stdin and stdout lead to a host: ssh.

    Args:
        command: its argv.

    Raises:
        Unavailable: it can't be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
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
        self.stream: RemoteStream = FrameStream(
            self._process.stdout.fileno(), self._process.stdin.fileno()
        )

    def last_error(self) -> str:
        """Return the last line of its stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._errors.seek(0)
        lines = self._errors.read()[-4096:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the process; a second time does nothing."""
        self.stream.close()
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()


__all__ = ["SCHEMES", "Channel", "ProcessChannel", "channel_factory", "ssh_command"]
