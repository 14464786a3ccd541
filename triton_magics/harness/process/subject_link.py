"""The judge's end of the channel to its subject process, and the format of the messages.

A message is four bytes of length and its body. The judge sends pickles. The subject process answers
in JSON, because unpickling would run code that a version can choose.

During a request the subject process may ask questions, which the judge answers.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import mmap
import os
import pickle
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from triton_magics.errors import UserError
from triton_magics.execution.protocol import CODE_CONNECTION_CLOSED
from triton_magics.harness.process.spin_wait import SpinWait
from triton_magics.model import Value

if TYPE_CHECKING:
    from triton_magics.harness.process.shared_memory import SharedMemory

HEADER = struct.Struct(">I")
MAX_REPLY_BYTES = 2**28
PROGRESS, QUESTION, REPLY, FAULT = b"P", b"Q", b"R", b"F"
END_S = 2.0  # between the end of the channel and the end of its process
V = TypeVar("V", bound=Value)
_SPINNING = SpinWait()


class SubjectFault(Exception):
    """Our own code failed in the subject process.

    Attributes:
        message, traceback: of the error there.
    """

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(message)
        self.message = message
        self.traceback = traceback


class Fault(Value):
    """An error of our own code in the subject process.

    Attributes:
        user: the user can mend it; `message` says how.
    """

    message: str
    traceback: str = ""
    user: bool = False


class SubjectLink:
    """The judge's end.

    Attributes:
        pid: of the subject process.
        memory: shared with it.
        device: of its kernels.
        can_share: whether tensors on the GPU can be handed over.
        on_violation: called where the process sent what is no message; does not return.
    """

    def __init__(self, channel: socket.socket, pid: int, mapped: mmap.mmap) -> None:
        self.pid = pid
        self._mapped = mapped
        self.can_share = True
        self.on_violation: Callable[[], NoReturn] = partial(os._exit, CODE_CONNECTION_CLOSED)
        self._channel = channel

    @cached_property
    def memory(self) -> SharedMemory:
        """Return the memory that is shared with the process; the first use imports torch."""
        return shared_memory().SharedMemory(self._mapped)

    def fileno(self) -> int:
        """Return the channel's descriptor; it is readable when the process has ended."""
        return self._channel.fileno()

    @property
    def cpu_s(self) -> float:
        """Return the CPU time that the process has taken, seconds."""
        clock = (~self.pid << 3) | 2  # Linux: the CPU clock of a process
        return time.clock_gettime(clock)

    def request(
        self,
        function: str,
        reply: type[V],
        *,
        copy_back: bool = False,
        emit: Callable[[bytes], None] | None = None,
        meanwhile: Callable[[], None] | None = None,
        answer: Callable[[bytes], Any] | None = None,
        **arguments: Any,
    ) -> V:
        """Call a function in the subject process; end like that process if it ends.

        Args:
            function: `module:name`.
            reply: the type of its result.
            copy_back: copy the arguments that had to be copied into shared memory back.
            emit: receives what the function sends before its result.
            meanwhile: called while the process works; must not raise.
            answer: answers the questions that the function asks before its result; its tensors
                are handed over in shared memory. Without it every answer is None.
            arguments: of the function; tensors are handed over in shared memory.

        Raises:
            SubjectFault: our own code failed there.
            UserError: an error that the user can fix.
        """
        streams = emit is not None
        head, body, staged = self._encode((function, arguments, streams))
        self._send(head)
        self._send(body)
        if meanwhile is not None:
            meanwhile()
        kind, message = self._receive()
        while (kind == PROGRESS and emit) or kind == QUESTION:
            if kind == PROGRESS and emit:
                emit(message)
            else:
                head, body, _ = self._encode(answer(message) if answer else None)
                self._send(head)
                self._send(body)
            kind, message = self._receive()
        if copy_back:
            for original, copied in staged:
                original.copy_(copied)
        return self._parse(kind, message, reply)

    def _encode(self, content: Any) -> tuple[bytes, bytes, list[tuple[Any, Any]]]:
        """Return the request, and the tensors that were copied into shared memory."""
        torch = sys.modules.get("torch")
        if torch is None:  # there are no tensors
            return pickle.dumps(None), pickle.dumps(content), []
        body, staged = shared_memory().dump(content, self.memory)
        head = pickle.dumps((self.memory.epoch, self.memory.handles()))
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()  # the inputs have been written
        return head, body, staged

    def _parse(self, kind: bytes, message: bytes, reply: type[V]) -> V:
        try:
            if kind == REPLY:
                return reply.model_validate_json(message)
            fault = Fault.model_validate_json(message)
        except ValueError:
            self.on_violation()
        if kind != FAULT:
            self.on_violation()
        if fault.user:
            raise UserError(fault.message)
        raise SubjectFault(fault.message, fault.traceback)

    def check_idle(self) -> None:
        """End like the process if it has ended while it had nothing to do."""
        try:
            unrequested = self._channel.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            unrequested = b""
        if unrequested:
            self.on_violation()
        self.end_alike()

    def _send(self, body: bytes) -> None:
        try:
            self._channel.sendall(HEADER.pack(len(body)) + body)
        except OSError:
            self.end_alike()

    def _receive(self) -> tuple[bytes, bytes]:
        (length,) = HEADER.unpack(self._read(HEADER.size))
        if not 0 < length <= MAX_REPLY_BYTES:
            self.on_violation()
        body = self._read(length)
        return body[:1], body[1:]

    def _read(self, n_bytes: int) -> bytes:
        chunks = bytearray()
        _SPINNING.wait(self._channel.fileno())
        while len(chunks) < n_bytes:
            try:
                chunk = self._channel.recv(n_bytes - len(chunks))
            except OSError:
                chunk = b""
            if not chunk:
                self.end_alike()
            chunks += chunk
        return bytes(chunks)

    def end_alike(self) -> NoReturn:
        """Wait for the process's end, and end this one in the same way."""
        status = _wait(self.pid, END_S)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            os._exit(CODE_CONNECTION_CLOSED)
        if os.WIFSIGNALED(status):
            faulthandler.disable()  # the process itself has printed its stack
            with contextlib.suppress(OSError):  # SIGKILL has no handler
                signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
            os.kill(os.getpid(), os.WTERMSIG(status))
            signal.pause()
        os._exit(os.WEXITSTATUS(status))


def _wait(pid: int, within_s: float) -> int | None:
    """Return the status of a child's end; None if it goes on."""
    deadline_s = time.monotonic() + within_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > deadline_s:
            return None
        time.sleep(0.005)


def shared_memory() -> Any:
    """Import and return the module, and with it torch."""
    return importlib.import_module("triton_magics.harness.process.shared_memory")


__all__ = ["SubjectFault", "SubjectLink"]
