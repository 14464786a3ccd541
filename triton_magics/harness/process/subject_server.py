"""The subject process's end of the channel: execute the judge's requests, and ask it questions.

See `subject_link` for the format of the messages.
"""

from __future__ import annotations

import importlib
import mmap
import os
import pickle
import socket
import sys
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn

from triton_magics import exception_text
from triton_magics.errors import UserError
from triton_magics.execution.protocol import CODE_CONNECTION_CLOSED
from triton_magics.harness.process import descriptor_reserve, parent_watch, version_signals
from triton_magics.harness.process.spin_wait import SpinWait
from triton_magics.harness.process.subject_link import (
    FAULT,
    HEADER,
    PROGRESS,
    QUESTION,
    REPLY,
    Fault,
    shared_memory,
)
from triton_magics.model import Value

if TYPE_CHECKING:
    from triton_magics.harness.process.shared_memory import MappedMemory

TRACEBACK_CHARS = 50_000
Emit = Callable[[Value], None]
_SPINNING = SpinWait()


def serve(channel: socket.socket, mapped: mmap.mmap, prepare: Callable[[], object]) -> NoReturn:
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
        return shared_memory().MappedMemory(self._mapped)

    def decode(self, head: bytes, body: bytes) -> Any:
        """Return the content of a request."""
        blocks = pickle.loads(head)  # noqa: S301 (the judge's own)
        if blocks is None:
            return pickle.loads(body)  # noqa: S301
        self._memory.update(*blocks)
        return shared_memory().load(body, self._memory)


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


__all__ = ["ask", "has_judge", "serve"]
