"""The command `triton-magics executor`, which a notebook starts by ssh: a session of its jobs.

The first connection is this process's own stdin and stdout. When it is lost, the process and its
jobs go on, and the next ssh finds it by the session's id, at an abstract unix socket.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from triton_magics.config import Settings
from triton_magics.execution.base import Executor, Limits
from triton_magics.execution.frame_stream import FrameStream
from triton_magics.execution.local.executor import LocalExecutor
from triton_magics.execution.protocol import ProtocolError
from triton_magics.execution.remote_frames import Attach, Attached, package_version
from triton_magics.execution.remote_host import ExecutorHost
from triton_magics.execution.resumable import KEEP_S, ResumableStream

CUT_S = 0.05  # sshd closes both ends of a lost connection at once; a client that ended, only one
SIGN_OF_LIFE_S = 15.0
_CHUNK = 2**16


def run_stdio(
    settings: Settings, make_executor: Callable[[Settings], Executor] = LocalExecutor
) -> NoReturn:
    """Serve a client on stdin and stdout, or lead it to its session; then exit.

    Args:
        settings: of this machine.
        make_executor: of a new session.
    """
    output = os.dup(1)
    os.dup2(2, 1)  # what anything here prints is no frame
    connection = FrameStream(0, output)
    try:
        attach = _read_attach(connection)
        if attach and (host := _find_session(attach.session)):
            _relay(attach, output, host)
        elif attach and attach.after:
            _refuse(connection)
        elif attach:
            with contextlib.suppress(OSError):
                os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            executor = make_executor(settings)
            DetachedHost(attach.session, executor, settings, _close_stdio).serve(connection)
    finally:
        os._exit(0)  # a thread may still wait for the executor


def _read_attach(connection: FrameStream) -> Attach | None:
    """Return a client's first frame; None, and an answer, where it has another version."""
    try:
        frame = connection.receive()
    except ProtocolError:
        frame = None
    if isinstance(frame, Attach) and frame.version == package_version():
        return frame
    _refuse(connection)
    return None


def _refuse(connection: FrameStream) -> None:
    with contextlib.suppress(OSError):
        connection.send(Attached(version=package_version(), is_known=False))


def _close_stdio() -> None:
    """Let the descriptors of a lost ssh lead nowhere: a write there would raise an error."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)


class DetachedHost:
    """A session: its executor, and the connection that its client has at present.

    Args:
        session: its id.
        executor: runs the jobs; closed at the end.
        settings: of this machine.
        close_first: called when the first connection was lost.
    """

    def __init__(
        self, session: str, executor: Executor, settings: Settings, close_first: Callable[[], None]
    ) -> None:
        self._session, self._executor, self._close_first = session, executor, close_first
        self._stream = ResumableStream(self._on_lost)
        limits = Limits.of(settings)
        self._host = ExecutorHost(
            self._executor, self._stream, package_version(), limits, ncu=settings.ncu
        )
        self._socket: socket.socket | None = None
        self._lost_at: float | None = None
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(_address(session))
        self._listener.listen()

    def serve(self, first: FrameStream) -> None:
        """Serve until the client leaves, or stays away too long; then cancel its jobs."""
        threading.Thread(target=self._accept, daemon=True).start()
        threading.Thread(target=self._watch_connection, daemon=True).start()
        self._go_on(first, 0)
        try:
            self._host.serve()
        finally:
            self._listener.close()
            self._executor.close()

    def _go_on(self, connection: FrameStream, after: int) -> None:
        """Answer on a new connection, and use it in place of the previous one."""
        n_received = self._stream.detach()
        if not self._stream.can_resume(after):
            _refuse(connection)
            self._stream.close()
            return
        with contextlib.suppress(OSError):
            connection.send(Attached(version=package_version(), after=n_received))
        self._lost_at = None
        self._stream.attach(connection, after)

    def _on_lost(self, connection: FrameStream) -> None:
        """Keep the session of a lost connection; end that of a client that has ended."""
        if not connection.is_cut(CUT_S):
            self._stream.close()
            return
        if self._socket is None:
            self._close_first()
        self._lost_at = time.monotonic()

    def _watch_connection(self) -> None:
        """End the session when its client stays away; let a dead connection be noticed."""
        while not self._stream.is_closed:
            time.sleep(SIGN_OF_LIFE_S)
            self._stream.send_sign_of_life()
            lost_at = self._lost_at
            is_late = lost_at is not None and time.monotonic() - lost_at > KEEP_S
            if is_late and not self._host.n_jobs:
                self._stream.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # the session has ended
            if not _is_own(connection):
                connection.close()
                continue
            frames = FrameStream(connection.fileno(), connection.fileno())
            attach = _read_attach(frames)
            if attach is None or attach.session != self._session:
                connection.close()
                continue
            self._stream.detach()
            previous, self._socket = self._socket, connection
            self._go_on(frames, attach.after)
            if previous:
                previous.close()


def _address(session: str) -> str:
    """Return the abstract address of a session: no file, and gone with its process."""
    return f"\0triton-magics-{session}"


def _is_own(connection: socket.socket) -> bool:
    """Return True where the other side is a process of this user."""
    form = struct.Struct("3i")
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, form.size)
    _, uid, _ = form.unpack(peer)
    return bool(uid == os.getuid())


def _find_session(session: str) -> socket.socket | None:
    """Return a connection to a session of this user; None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(_address(session))
        if _is_own(connection):
            return connection
    except OSError:
        pass
    connection.close()
    return None


def _relay(attach: Attach, output: int, host: socket.socket) -> None:
    """Copy bytes between this process's stdin and stdout and a session, until one of them ends."""
    FrameStream(host.fileno(), host.fileno()).send(attach)
    host.setblocking(True)
    os.set_blocking(output, True)

    def copy_answers() -> None:
        with contextlib.suppress(OSError):
            while data := host.recv(_CHUNK):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(output, rest) :]
        os._exit(0)

    threading.Thread(target=copy_answers, daemon=True).start()
    with contextlib.suppress(OSError):
        while data := os.read(0, _CHUNK):
            host.sendall(data)
    if not FrameStream(0, output).is_cut(CUT_S):
        host.shutdown(socket.SHUT_WR)
        threading.Event().wait(KEEP_S)


__all__ = ["DetachedHost", "run_stdio"]
