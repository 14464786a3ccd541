"""Processes that stand by to compile for a worker, side by side.

Triton's front end holds Python's lock, so that threads compile one after the other. These
processes are forked when their worker starts: torch and Triton are imported by then, and there is
no context on a GPU yet (which no fork survives), no thread, no code of the user's. They serve one
job and end. What they compile lies in the worker's Triton cache, where Triton finds it.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

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
        while theirs:
            talk = theirs.pop()
            if not os.fork():
                for end in theirs:
                    end.close()
                _serve(talk, work)
            talk.close()
        while True:
            os.wait()
    except ChildProcessError:  # none is left
        pass
    finally:
        os._exit(0)


def _alone(unwanted: Sequence[int]) -> None:
    """Says nothing, and holds no end that would hide another's hanging up."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    for fd in (nowhere, *unwanted):
        os.close(fd)
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
    """Has them end, and does not wait: to give back what it shares with us takes each 20 ms.

    What code under test has forked may hold a copy of our ends: to close ours would not do.
    """
    while _standing_by:
        talk = _standing_by.pop()
        with contextlib.suppress(OSError):  # code under test may have closed it
            talk.shutdown(socket.SHUT_RDWR)
            talk.close()


def have_done(orders: Sequence[dict[str, Any]]) -> bool:
    """Has all orders worked on, and the processes leave; whether there were any, and none failed.

    The order of one that dies of it is dropped.
    """
    if not _standing_by:
        return False
    failed = False
    waiting = deque(json.dumps(order).encode() for order in orders)
    try:
        with selectors.DefaultSelector() as selector:
            for talk in _standing_by:
                if waiting and _sent(talk, waiting[0]):
                    waiting.popleft()
                    selector.register(talk, selectors.EVENT_READ)
            if not selector.get_map():
                return False
            while selector.get_map():
                for key, _ in selector.select():
                    one: Any = key.fileobj
                    heard = _heard(one)
                    failed = failed or heard == FAILED
                    if heard and waiting and _sent(one, waiting[0]):
                        waiting.popleft()
                    else:
                        selector.unregister(one)
    finally:
        _dismiss()
    return not failed


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
