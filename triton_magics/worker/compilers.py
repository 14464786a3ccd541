"""Processes that stand by to compile for a worker, side by side.

Triton's front end holds Python's lock, so that threads compile one after the other. These
processes are forked when their worker starts: torch and Triton are imported by then, and there is
no context on a GPU yet (which no fork survives), no thread, no code of the user's. They serve one
job and end. What they compile lies in the worker's Triton cache, where Triton finds it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NoReturn

from triton_magics.engine.protocol import WHERE
from triton_magics.worker import watch

MOST = 12  # `--quick` of a softmax has twelve forms
ORDER_BYTES = 2**16
DONE, FAILED = b"done", b"failed"


_standing_by: list[socket.socket] = []  # our end to each
_parents: list[int] = []


def stand_by(work: Callable[[dict[str, Any]], None], *, close: Sequence[int] = ()) -> None:
    """Has them forked, where this process has imported torch and more than one core.

    By a child of its own, which then waits for their end: a dozen forks take 0.1 s.

    Args:
        work: what each does with an order; what it raises is not told, only that it did.
        close: descriptors that are not theirs.
    """
    count = min(MOST, os.cpu_count() or 1)
    if "torch" not in sys.modules or count == 1:
        return
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
    ours, theirs = map(list, zip(*pairs, strict=True))
    if parent := os.fork():
        _parents.append(parent)
        _standing_by.extend(ours)
        for end in theirs:
            end.close()
        return
    try:
        _alone((*close, *(end.fileno() for end in ours)))
        children: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: _kill(children))
        while theirs:
            talk = theirs.pop()
            if not (child := os.fork()):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                watch.tell_where_when_asked(f"{WHERE}.{os.getpid()}")
                for end in theirs:
                    end.close()
                _serve(talk, work)
            children.append(child)
            talk.close()
        while True:
            os.wait()
    except ChildProcessError:  # none is left
        pass
    finally:
        os._exit(0)


def _kill(pids: Sequence[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _alone(unwanted: Sequence[int]) -> None:
    """Says nothing, and holds no end that would hide another's hanging up."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    for fd in (nowhere, *unwanted):
        os.close(fd)
    faulthandler.unregister(signal.SIGURG)  # the worker's file is the worker's
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a context would take memory of the GPU


def _serve(talk: socket.socket, work: Callable[[dict[str, Any]], None]) -> NoReturn:
    """Does what it is told, says that it has, and ends when the worker hangs up."""
    try:
        while message := talk.recv(ORDER_BYTES):
            try:
                work(json.loads(message))
            except BaseException:  # noqa: BLE001 (the version's own: its worker will say what)
                talk.send(FAILED)
            else:
                talk.send(DONE)
    finally:
        os._exit(0)


def end() -> None:
    """Waits until none of them is left: what a job leaves running counts against it."""
    _dismiss()
    while _parents:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(_parents.pop(), 0)


def _dismiss() -> None:
    """Has them end, and does not wait: to give back what it shares with us takes each 20 ms."""
    while _standing_by:
        _hang_up(_standing_by.pop())


def _hang_up(talk: socket.socket) -> None:
    """What code under test has forked may hold a copy of our end: to close ours would not do."""
    with contextlib.suppress(OSError):  # it has died, or code under test has closed it
        talk.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        talk.close()


def rehearse(order: dict[str, Any], count: int) -> None:
    """Has some of them, those that will be given orders first, do this one; they go on standing by.

    What it comes to is not told.
    """
    message = json.dumps(order).encode()
    for talk in [talk for talk in _standing_by[:count] if _sent(talk, message)]:
        _heard(talk)


def begin(orders: Sequence[dict[str, Any]]) -> Work | None:
    """Has them begin with the orders, the first ones first; None where there are none of them.

    Each leaves as soon as there is nothing more for it to do.
    """
    work = Work(_standing_by, orders)
    _standing_by.clear()
    return work if work.begun else None


class Work:
    """Orders that are being worked on.

    Attributes:
        begun: whether anyone has taken any.
        failed: the numbers of those that raised; the order of one that dies of it is dropped.
    """

    def __init__(self, talks: Sequence[socket.socket], orders: Sequence[dict[str, Any]]) -> None:
        self.failed: set[int] = set()
        self._waiting = deque((i, json.dumps(order).encode()) for i, order in enumerate(orders))
        self._doing: dict[socket.socket, int] = {}
        for talk in talks:
            self._next(talk)
        self.begun = bool(self._doing)

    def wait(self, for_: Collection[int] | None = None, *, within_s: float | None = None) -> bool:
        """Waits for some orders, or for all; whether none of them is being worked on any more."""
        until = None if within_s is None else time.monotonic() + within_s
        while self._unfinished(for_):
            told = _readable(self._doing, None if until is None else until - time.monotonic())
            if not told:
                return False
            for talk in told:
                self._hear(talk)
        return True

    def stop(self) -> None:
        """Ends the processes amid their work; what they have not finished is lost.

        Their parent says when they are gone: what one has forked keeps its end of the talk open.
        """
        self._waiting.clear()
        while self._doing:
            _hang_up(self._doing.popitem()[0])
        _kill(_parents, signal.SIGTERM)
        end()

    def _unfinished(self, some: Collection[int] | None) -> bool:
        """Whether anyone works on one of them, or still may."""
        left = {*self._doing.values(), *(i for i, _ in self._waiting if self._doing)}
        return bool(left if some is None else left & {*some})

    def _hear(self, talk: socket.socket) -> None:
        """Takes in what one says of its order, and gives it another."""
        number = self._doing.pop(talk)
        heard = _heard(talk)
        if heard == FAILED:
            self.failed.add(number)
        if heard:
            self._next(talk)
        else:  # it has died
            _hang_up(talk)

    def _next(self, talk: socket.socket) -> None:
        if self._waiting and _sent(talk, self._waiting[0][1]):
            self._doing[talk] = self._waiting.popleft()[0]
        else:
            _hang_up(talk)


def _readable(talks: Iterable[socket.socket], within_s: float | None) -> list[socket.socket]:
    with selectors.DefaultSelector() as selector:
        closed = [talk for talk in talks if not _watched(talk, selector)]
        if closed:  # by code under test: to hear one tells that it is lost
            return closed
        told: list[Any] = [key.fileobj for key, _ in selector.select(within_s)]
        return told


def _watched(talk: socket.socket, selector: selectors.BaseSelector) -> bool:
    try:
        selector.register(talk, selectors.EVENT_READ)
    except OSError:
        return False
    return True


def _sent(talk: socket.socket, message: bytes) -> bool:
    try:
        return talk.send(message) > 0
    except OSError:  # it has died
        return False


def _heard(talk: socket.socket) -> bytes:
    try:
        return talk.recv(len(FAILED))
    except OSError:
        return b""
