"""The zygote: imports what every worker needs, once, and forks a worker whenever it is asked.

A fork takes 0.02 s where a new process takes seconds to import torch. The zygote makes no context
on a GPU (CUDA does not survive a fork) and starts no thread (nor does one), so that a fork is a
whole process; and it runs no code but this package's, so that each worker is as untouched as a new
one.

    nanny ─┬─ zygote
           └─ guard ── worker

Between the nanny and each worker is a *guard*, a fork that only waits for the worker's end. Code
under test that kills its parent kills that, and so itself: the nanny and the zygote live on.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from triton_magics.engine.protocol import Mode
from triton_magics.model import Environment
from triton_magics.worker import watch

READY = b"ready"
ORDER_BYTES = 2**16
# What torch and triton import only when they are first used.
LATE = ("torch._dynamo", "triton.compiler.code_generator", "triton.experimental.gluon")
_MAIN = ("__main__",)


class Work(Protocol):
    """What a worker does, given its mode, its data socket and, if it has rehearsed, where it is."""

    def __call__(self, mode: Mode, fd: int, *, environment: Environment | None = None) -> None: ...


@dataclass(frozen=True)
class Order:
    """A worker that is wanted.

    Attributes:
        mode, cwd: as for a worker that is started by itself.
        scratch: the folder of its Triton cache.
        data, output: descriptors of its socket and its output pipe.
    """

    mode: Mode
    cwd: str
    scratch: str
    data: int
    output: int


def prepare() -> Environment | None:
    """All that can be done before a fork; where the workers run, if they need no more than that."""
    load_all()
    return _rehearse_on_the_cpu()


def serve(fd: int, work: Work, prepare: Callable[[], Environment | None] = prepare) -> None:
    """Forks a worker for each order, until the nanny hangs up.

    Args:
        fd: a SOCK_SEQPACKET socket to the nanny. An order is one message of JSON (mode, cwd,
            scratch) with two descriptors, the worker's data socket and output pipe; the answer is
            the pids of worker and guard.
        work: what a worker does.
        prepare: is called once, before the first.
    """
    watch.die_with_parent()
    watch.be_expendable()
    talk = socket.socket(fileno=fd)
    talk.set_inheritable(False)
    environment = prepare()
    gc.collect()
    gc.freeze()  # what is shared with the workers stays shared
    talk.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(talk, ORDER_BYTES, 2)
        if not message:
            os._exit(0)
        order = Order(**json.loads(message), data=descriptors[0], output=descriptors[1])
        talk.send(_fork(order, talk, partial(work, environment=environment)))


def _rehearse_on_the_cpu() -> Environment | None:
    """What a worker in the interpreter does to be warm, in this one thread; None on a GPU."""
    from triton_magics.worker import resources

    if not resources.interpreting():
        return None
    with one_thread():
        environment: Environment = resources.warm_up("interpreter")
    return environment


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps torch from starting threads, which a fork would not have."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def load_all() -> None:
    """Imports every module of the worker and all ops, and with them torch and triton."""
    for package in ("triton_magics.worker", "triton_magics.ops"):
        path = importlib.import_module(package).__path__
        for module in pkgutil.iter_modules(path, f"{package}."):
            if not module.name.endswith(_MAIN):
                importlib.import_module(module.name)
    for name in LATE:
        importlib.import_module(name)
    if os.environ.get("TRITON_INTERPRET") != "1":
        cache = importlib.import_module("triton.runtime.cache")
        if triton_key := getattr(cache, "triton_key", None):
            triton_key()  # the hash of all of triton, which it remembers: 0.4 s


def _fork(order: Order, talk: socket.socket, work: Callable[[Mode, int], None]) -> bytes:
    """Forks twice, so that the guard becomes a child of the nanny; `WORKER GUARD`, their pids."""
    here, there = os.pipe()
    middle = os.fork()
    if not middle:
        middle = os.getpid()
        if os.fork():
            os._exit(0)
        talk.close()
        os.close(here)
        _wait_for_the_end_of(middle)
        _guard(order, there, work)
    for fd in (there, order.data, order.output):
        os.close(fd)
    os.waitpid(middle, 0)
    pids = os.read(here, 64)
    os.close(here)
    return pids


def _guard(order: Order, answer_fd: int, work: Callable[[Mode, int], None]) -> None:
    """Starts the worker and ends with it, leaving it as a zombie to the nanny."""
    try:
        os.setsid()  # apart from the zygote, which is stopped at times
        guard = os.getpid()
        watch.die_with_parent()
        if not (worker := os.fork()):
            os.close(answer_fd)
            os.environ[watch.PARENT] = str(guard)
            watch.die_with_parent()
            _become_worker(order, work)
        os.write(answer_fd, b"%d %d" % (worker, guard))
        for fd in (answer_fd, order.data, order.output):
            os.close(fd)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    finally:
        os._exit(0)


def _become_worker(order: Order, work: Callable[[Mode, int], None]) -> None:
    """What `exec` would have made of this process; ends with it."""
    try:
        os.setsid()
        os.dup2(order.output, 1)
        os.dup2(order.output, 2)
        os.close(order.output)
        os.environ["TRITON_CACHE_DIR"] = order.scratch
        os.chdir(order.cwd)
        _reseed()
        work(order.mode, order.data)
    except BaseException:  # noqa: BLE001 (the end of the process: nobody else is there to say why)
        traceback.print_exc()
    finally:
        os._exit(1)


def _reseed() -> None:
    """Workers share no random numbers (Python's own `random` sees to it by itself)."""
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def _wait_for_the_end_of(parent: int) -> None:
    """Until this process has been adopted, by the nanny or, should that be gone, by another."""
    while os.getppid() == parent:
        time.sleep(0.001)


__all__ = ["Order", "one_thread", "prepare", "serve"]
