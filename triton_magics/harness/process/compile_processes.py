"""Idle processes that compile for a worker in parallel.

A compiler's front end holds the GIL, so threads compile one after the other. These processes are
forked when their worker starts: torch and the compiler are imported by then, and there is no CUDA
context yet (which does not survive a fork), no thread, no user code. They serve one job and end.
They compile into the worker's compile cache, where a launch finds the results.
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
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NoReturn

from triton_magics.execution.cpu_cores import core_share
from triton_magics.execution.sandbox import enter_from_environment
from triton_magics.execution.scratch import STACK
from triton_magics.harness.process import parent_watch

MAX_PROCESSES = 16  # a quick plan of softmax has 15 forms
ORDER_BYTES = 2**16
DONE, FAILED, REFUSED = b"done", b"failed", b"refused"


class Refused(BaseException):
    """An order was not executed, because it would take too long."""


_idle_channels: list[socket.socket] = []  # this process's end of each
_parents: list[int] = []


def start_compile_processes(
    work: Callable[[dict[str, Any]], dict[str, Any] | None], *, close: Sequence[int] = ()
) -> None:
    """Fork the processes, one for each core, if torch is imported and there is more than one.

    A child forks them and waits for their end, because a dozen forks take 0.1 s.

    Args:
        work: executes an order, and returns one that is to follow, if any, for whichever process
            is free; of an exception only the fact is reported.
        close: descriptors that the processes must close.
    """
    count = min(MAX_PROCESSES, core_share())
    if "torch" not in sys.modules or count == 1:
        return
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(count)]
    ours, theirs = map(list, zip(*pairs, strict=True))
    if parent := os.fork():
        _parents.append(parent)
        _idle_channels.extend(ours)
        for end in theirs:
            end.close()
        return
    try:
        _isolate((*close, *(end.fileno() for end in ours)))
        enter_from_environment()
        children: list[int] = []
        signal.signal(signal.SIGTERM, lambda *_: _kill(children))
        while theirs:
            channel = theirs.pop()
            if not (child := os.fork()):
                os.setpgid(0, 0)  # its compilers (ptxas, gcc) are killed with it
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                parent_watch.install_stack_dump_handler(f"{STACK}.{os.getpid()}")
                for end in theirs:
                    end.close()
                _serve(channel, work)
            children.append(child)
            channel.close()
        while True:
            os.wait()
    except ChildProcessError:  # none is left
        pass
    finally:
        os._exit(0)


def _kill(pids: Sequence[int]) -> None:
    """Kill compile processes with the programs that they have started."""
    for pid in pids:
        for kill in (os.kill, os.killpg):  # of one that has just started there is no group yet
            with contextlib.suppress(ProcessLookupError):
                kill(pid, signal.SIGKILL)


def _isolate(unwanted: Sequence[int]) -> None:
    """Silence the output, and close descriptors that would hide another process's hang-up."""
    devnull = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(devnull, fd)
    for fd in (devnull, *unwanted):
        os.close(fd)
    faulthandler.unregister(signal.SIGURG)  # the stack dump file belongs to the worker
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a CUDA context would use GPU memory


def _serve(
    channel: socket.socket, work: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> NoReturn:
    """Execute orders, report each result, and end when the worker hangs up."""
    try:
        while message := channel.recv(ORDER_BYTES):
            try:
                following = work(json.loads(message))
            except Refused:
                channel.send(REFUSED)
            except BaseException:  # noqa: BLE001 (the version's error; the worker will report it)
                channel.send(FAILED)
            else:
                channel.send(DONE + json.dumps(following).encode() if following else DONE)
    finally:
        os._exit(0)


def wait_for_exit() -> None:
    """End the processes and wait: a process left running would count against the job."""
    _dismiss()
    while _parents:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(_parents.pop(), 0)


def _dismiss() -> None:
    """Ask the processes to end, without waiting: each takes 20 ms to release shared memory."""
    while _idle_channels:
        _hang_up(_idle_channels.pop())


def _hang_up(channel: socket.socket) -> None:
    """Shut the channel down; a fork of code under test may hold a copy that stays open."""
    with contextlib.suppress(OSError):  # the process died, or code under test closed the channel
        channel.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        channel.close()


def warm_up(order: dict[str, Any], count: int) -> None:
    """Execute an order on the first processes, and ignore its result; they stay idle afterwards."""
    message = json.dumps(order).encode()
    for channel in [channel for channel in _idle_channels[:count] if _send(channel, message)]:
        _receive(channel)


def submit(orders: Sequence[dict[str, Any]], *, is_open: bool = False) -> CompileBatch | None:
    """Start executing the orders; return None if there is no process.

    They start in their order. One that follows another is the next, and that is finished with it.
    One whose `group` has an order under execution comes after those of other groups: the two are
    likely to compile the same. One that is `alone` starts only once no other of its group is under
    execution. Each process ends as soon as no order is left for it, unless the batch is open: then
    it waits for more.
    """
    batch = CompileBatch(_idle_channels, orders, is_open=is_open)
    _idle_channels.clear()
    return batch if batch.is_started else None


class CompileBatch:
    """Orders under execution.

    Attributes:
        is_started: whether a process has taken an order.
        refused: indices of the orders that raised `Refused`.
        failed: indices of the orders that raised; an order that kills its process is dropped. The
            indices of orders that follow others come after those of `orders`.
    """

    def __init__(
        self,
        channels: Sequence[socket.socket],
        orders: Sequence[dict[str, Any]],
        *,
        is_open: bool = False,
    ) -> None:
        self.failed: set[int] = set()
        self.refused: set[int] = set()
        self._waiting: list[tuple[int, bytes]] = []
        self._groups: list[Any] = []
        self._alone: set[int] = set()
        self._origins: dict[int, int] = {}  # of orders that follow others
        self._running: dict[socket.socket, int] = {}
        self._idle = [*channels]
        self._is_open = is_open
        self.add(orders)
        self.is_started = bool(self._running)

    def add(self, orders: Sequence[dict[str, Any]]) -> list[int]:
        """Execute further orders, if a process is left; return their indices."""
        indices = [self._add(order) for order in orders]
        channels, self._idle = self._idle, []
        for channel in channels:
            self._assign(channel)
        return indices

    def close(self) -> None:
        """Let each process end once no order is left for it."""
        self._is_open = False
        while self._idle:
            _hang_up(self._idle.pop())

    def wait(
        self, indices: Collection[int] | None = None, *, within_s: float | None = None
    ) -> bool:
        """Wait for some or all orders; return whether they are finished."""
        deadline_s = None if within_s is None else time.monotonic() + within_s
        while self._has_unfinished(indices):
            left_s = None if deadline_s is None else deadline_s - time.monotonic()
            readable = _readable(self._running, left_s)
            if not readable:
                return False
            for channel in readable:
                self._handle_result(channel)
        return True

    def advance(self) -> None:
        """Give each process that has finished its order the next one, without waiting."""
        while self._running and (readable := _readable(self._running, 0.0)):
            for channel in readable:
                self._handle_result(channel)

    def stop(self) -> None:
        """Kill the processes and the compilers that they run; unfinished orders are lost.

        Wait for their parent: a fork of a process keeps its end of the channel open.
        """
        self._waiting.clear()
        self.close()
        while self._running:
            _hang_up(self._running.popitem()[0])
        for parent in _parents:
            with contextlib.suppress(ProcessLookupError):
                os.kill(parent, signal.SIGTERM)
        wait_for_exit()

    def _add(self, order: dict[str, Any], *, first: bool = False) -> int:
        index, group = len(self._groups), order.get("group")
        place = 0 if first else len(self._waiting)
        self._waiting.insert(place, (index, json.dumps(order).encode()))
        self._groups.append(index if group is None else group)
        if order.get("alone"):
            self._alone.add(index)
        return index

    def _has_unfinished(self, indices: Collection[int] | None) -> bool:
        """Return whether one of the orders is running or waiting."""
        left = {*self._running.values(), *(i for i, _ in self._waiting if self._running)}
        left |= {self._origins[i] for i in left if i in self._origins}
        return bool(left if indices is None else left & {*indices})

    def _handle_result(self, channel: socket.socket) -> None:
        """Record the result of a process's order, and assign the next order."""
        number = self._running.pop(channel)
        result = _receive(channel)
        if result == FAILED:
            self.failed.add(number)
        elif result == REFUSED:
            self.refused.add(number)
        elif following := result.removeprefix(DONE):
            index = self._add(json.loads(following) | {"group": None, "alone": False}, first=True)
            self._origins[index] = self._origins.get(number, number)
        if result:
            self._assign(channel)
        else:  # the process died
            _hang_up(channel)

    def _assign(self, channel: socket.socket) -> None:
        place = self._next_place()
        if place is not None and _send(channel, self._waiting[place][1]):
            self._running[channel] = self._waiting.pop(place)[0]
        elif place is None and self._is_open:
            self._idle.append(channel)
        else:
            _hang_up(channel)

    def _next_place(self) -> int | None:
        """Return the place of the first order of a group that no process is at; else the first."""
        busy = [self._groups[i] for i in self._running.values()]
        waiting = [(at, i) for at, (i, _) in enumerate(self._waiting)]
        beside_others = [at for at, i in waiting if self._groups[i] not in busy]
        beside_its_own = [at for at, i in waiting if i not in self._alone]
        return next(iter((*beside_others, *beside_its_own)), None)


def _readable(channels: Iterable[socket.socket], within_s: float | None) -> list[socket.socket]:
    with selectors.DefaultSelector() as selector:
        closed = [channel for channel in channels if not _register(channel, selector)]
        if closed:  # by code under test: receiving fails and marks the process as dead
            return closed
        readable: list[Any] = [key.fileobj for key, _ in selector.select(within_s)]
        return readable


def _register(channel: socket.socket, selector: selectors.BaseSelector) -> bool:
    try:
        selector.register(channel, selectors.EVENT_READ)
    except OSError:
        return False
    return True


def _send(channel: socket.socket, message: bytes) -> bool:
    try:
        return channel.send(message) > 0
    except OSError:  # the process died
        return False


def _receive(channel: socket.socket) -> bytes:
    try:
        return channel.recv(ORDER_BYTES)
    except OSError:
        return b""
