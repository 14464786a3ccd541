"""The judge and its subject process: the fork, the channel between them, and both ends of it.

A worker that judges versions forks once, before it holds anything that a version must not know. The
child, the subject process, alone loads and calls versions. The parent, the judge, makes the inputs,
computes what is expected, compares, and reports. Only inputs and outputs cross, in shared memory.

During a request the subject process may ask questions, which the judge answers.

A message is four bytes of length and its body. The judge sends pickles. The subject process answers
in JSON, because unpickling would run code that a version can choose.
"""

from __future__ import annotations

import contextlib
import ctypes
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
import traceback
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from triton_magics import exception_text
from triton_magics.errors import UserError
from triton_magics.execution.protocol import CODE_CONNECTION_CLOSED
from triton_magics.execution.sandbox import enter_from_environment
from triton_magics.execution.scratch import STACK
from triton_magics.harness.process import descriptor_reserve, parent_watch, version_signals
from triton_magics.harness.process.spin_wait import SpinWait
from triton_magics.model import Value

if TYPE_CHECKING:
    import torch

    from triton_magics.harness.process.shared_memory import MappedMemory, SharedMemory

HEADER = struct.Struct(">I")
MAX_REPLY_BYTES = 2**28
TRACEBACK_CHARS = 50_000
PROGRESS, QUESTION, REPLY, FAULT = b"P", b"Q", b"R", b"F"
MAP_NORESERVE = 0x4000  # Linux; Python's mmap module names it from 3.13 on
CPU_BYTES = tuple(2**n for n in (38, 36, 34, 32, 30))  # address space; only used pages take memory
END_S = 2.0  # between the end of the channel and the end of its process
_PR_SET_DUMPABLE = 4
V = TypeVar("V", bound=Value)
_SPINNING = SpinWait()
Emit = Callable[[Value], None]


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
        return _shared_memory().SharedMemory(self._mapped)

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
        body, staged = _shared_memory().dump(content, self.memory)
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


def _shared_memory() -> Any:
    """Import and return the module, and with it torch."""
    return importlib.import_module("triton_magics.harness.process.shared_memory")


def _map_shared() -> mmap.mmap:
    """Return memory that this process shares with its later forks.

    Raises:
        OSError: the system refuses even the smallest size.
    """
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    for n_bytes in CPU_BYTES:
        with contextlib.suppress(OSError, ValueError):
            return mmap.mmap(-1, n_bytes, flags=flags)
    raise OSError("no address space for the memory that a version's process shares")


_links: list[SubjectLink] = []


def link() -> SubjectLink | None:
    """Return the link to the subject process; None in a process that has none."""
    return _links[0] if _links else None


def start(prepare: Callable[[], object], *, close: int) -> SubjectLink:
    """Fork the subject process, before any thread or CUDA context; only the judge returns.

    Args:
        prepare: called in the subject process before its first request.
        close: the judge's data socket, which the subject process must not have.
    """
    mapped = _map_shared()
    ours, theirs = socket.socketpair()
    judge = os.getpid()
    if not (pid := os.fork()):
        try:
            os.close(close)
            ours.close()
            parent_watch.die_with(judge)
            enter_from_environment()
            _serve(theirs, mapped, prepare)
        except BaseException:  # noqa: BLE001 (the process ends here: report the reason)
            traceback.print_exc()
        finally:
            os._exit(1)
    theirs.close()
    faulthandler.unregister(signal.SIGURG)
    parent_watch.install_stack_dump_handler(f"{STACK}.judge")
    channel = socket.socket(fileno=parent_watch.move_to_high_descriptor(ours.detach()))
    _links.append(SubjectLink(channel, pid, mapped))
    return _links[0]


class Pong(Value):
    """The sum of the bytes of a tensor that was handed over."""

    total: int


def ping(tensor: torch.Tensor) -> Pong:
    """Read a tensor in the subject process."""
    return Pong(total=int(tensor.sum()))


def can_share(link: SubjectLink, device: torch.device) -> bool:
    """Return whether the subject process can read tensors of this device."""
    try:
        sample = link.memory.allocate(8, device).fill_(3)
        reply = link.request(f"{__name__}:ping", Pong, tensor=sample)
    except (RuntimeError, SubjectFault, OSError):
        return False
    return reply.total == 24


def hide_memory() -> None:
    """Refuse this user's other processes to read or trace this one."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


# ------------------------------------------------------------------------- the subject process


def _serve(channel: socket.socket, mapped: mmap.mmap, prepare: Callable[[], object]) -> NoReturn:
    """Execute requests until the judge ends."""
    fd = parent_watch.move_to_high_descriptor(channel.detach())
    descriptor_reserve.reserve_descriptors()
    parent_watch.start_hangup_watch(fd)
    prepare()
    # Last, so that a user's module can't shadow one of torch's.
    sys.path.append(os.getcwd())
    requests = _Requests(mapped)
    _judges.append(partial(_ask, fd, requests))
    while True:
        head, body = _read(fd), _read(fd)
        emit = partial(_emit, fd)
        _send(fd, _execute(partial(requests.decode, head, body), emit))


class _Requests:
    """Decodes requests."""

    def __init__(self, mapped: mmap.mmap) -> None:
        self._mapped = mapped

    @cached_property
    def _memory(self) -> MappedMemory:
        return _shared_memory().MappedMemory(self._mapped)

    def decode(self, head: bytes, body: bytes) -> Any:
        """Return the content of a request."""
        blocks = pickle.loads(head)  # noqa: S301 (the judge's own)
        if blocks is None:
            return pickle.loads(body)  # noqa: S301
        self._memory.update(*blocks)
        return _shared_memory().load(body, self._memory)


_judges: list[Callable[[Value], Any]] = []


def has_judge() -> bool:
    """Return whether this is a subject process, which can ask a judge."""
    return bool(_judges)


def ask(question: Value) -> Any:
    """Ask the judge during one of its requests; its answer's tensors are in shared memory."""
    return _judges[0](question)


def _ask(fd: int, requests: _Requests, question: Value) -> Any:
    with version_signals.shielded():
        _send(fd, _encode(QUESTION, question))
        return requests.decode(_read(fd), _read(fd))


def _emit(fd: int, value: Value) -> None:
    with version_signals.shielded():
        _send(fd, _encode(PROGRESS, value))


def _execute(decode: Callable[[], Any], emit: Emit) -> bytes:
    try:
        return _call(decode, emit)
    except BaseException as error:  # noqa: BLE001 (no request goes unanswered)
        version_signals.set_aside()
        return _encode(FAULT, _fault(error))


def _call(decode: Callable[[], Any], emit: Emit) -> bytes:
    """Call the function of a request; a version's signal handlers are in place only meanwhile."""
    function, arguments, streams = decode()
    module, _, name = function.partition(":")
    handler = getattr(importlib.import_module(module), name)
    try:
        version_signals.put_back()
        reply = handler(**arguments, **({"emit": emit} if streams else {}))
    finally:
        version_signals.set_aside()
    return _encode(REPLY, reply)


def _encode(kind: bytes, value: Value) -> bytes:
    body = kind + value.model_dump_json().encode()
    return HEADER.pack(len(body)) + body


def _fault(error: BaseException) -> Fault:
    if descriptor_reserve.is_exhaustion_error(error):
        descriptor_reserve.release_reserve()
        return Fault(message=descriptor_reserve.EXHAUSTED)
    user = exception_text.is_a(error, UserError)
    message = exception_text.message(error) if user else exception_text.one_line(error)
    text = exception_text.format_error(error)
    return Fault(message=message, traceback=text[-TRACEBACK_CHARS:], user=user)


def _read(fd: int) -> bytes:
    _SPINNING.wait(fd)
    (length,) = HEADER.unpack(_read_exactly(fd, HEADER.size))
    return _read_exactly(fd, length)


def _read_exactly(fd: int, n_bytes: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < n_bytes:
        try:
            chunk = os.read(fd, n_bytes - len(chunks))
        except OSError:
            chunk = b""
        if not chunk:
            os._exit(CODE_CONNECTION_CLOSED)
        chunks += chunk
    return bytes(chunks)


def _send(fd: int, message: bytes) -> None:
    view = memoryview(message)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except OSError:
            os._exit(CODE_CONNECTION_CLOSED)


__all__ = ["SubjectFault", "SubjectLink", "hide_memory", "link", "start"]
