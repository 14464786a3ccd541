"""The fork server: imports what every worker needs once, and forks workers on request.

A fork takes 0.02 s; a new process takes seconds to import torch. The fork server creates no CUDA
context and starts no thread, because neither survives a fork. It runs no code but this package's,
so each worker is as clean as a new process.

    supervisor ─┬─ fork server
                └─ watchdog ── worker

Between the supervisor and each worker is a *watchdog*, a fork that only waits for the worker's end.
Code under test that kills its parent kills the watchdog, and so itself; the supervisor and the fork
server keep running.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from triton_magics import languages
from triton_magics.execution import seccomp
from triton_magics.execution.job_requests import Mode
from triton_magics.execution.sandbox import VARIABLE
from triton_magics.execution.scratch import variables
from triton_magics.harness.process import parent_watch
from triton_magics.model import Environment

READY = b"ready"
ORDER_BYTES = 2**16
LATE_IMPORTS = ("torch._dynamo",)  # modules that torch imports on first use
_MAIN = ("__main__",)


class WorkerMain(Protocol):
    """A worker's main function: mode, data socket and, after a warm-up, the environment."""

    def __call__(self, mode: Mode, fd: int, *, environment: Environment | None = None) -> None: ...


@dataclass(frozen=True)
class ForkRequest:
    """A request to fork a worker.

    Attributes:
        mode, cwd: as for a worker with a process of its own.
        scratch: a folder of its own.
        is_confined: it enters the sandbox that the environment names.
        data, output: descriptors of its data socket and its output pipe.
    """

    mode: Mode
    cwd: str
    scratch: str
    is_confined: bool
    data: int
    output: int


def serve(fd: int, work: WorkerMain, prepare: Callable[[], Environment | None]) -> None:
    """Fork a worker for each request, until the supervisor hangs up.

    Args:
        fd: a SOCK_SEQPACKET socket to the supervisor. A request is one JSON message (mode, cwd,
            scratch) with two descriptors, the worker's data socket and output pipe; the answer is
            the pids of worker and watchdog.
        work: the worker's main function.
        prepare: called once, before the first fork; returns the environment of the workers, if
            they need no warm-up.
    """
    parent_watch.die_with_parent()
    parent_watch.prefer_oom_kill()
    control = socket.socket(fileno=fd)
    control.set_inheritable(False)
    protected = [*parent_watch.ancestors(), os.getpid()]
    environment = prepare()
    gc.collect()
    gc.freeze()  # memory shared with the workers stays shared
    control.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, ORDER_BYTES, 2)
        if not message:
            os._exit(0)
        request = ForkRequest(**json.loads(message), data=descriptors[0], output=descriptors[1])
        control.send(_fork(request, control, protected, partial(work, environment=environment)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch from starting threads, which do not survive a fork."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def import_all_modules() -> None:
    """Import every module of the harness and all ops, and with them torch."""
    for package in ("triton_magics.harness", "triton_magics.operators"):
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            if not module.name.endswith(_MAIN):
                importlib.import_module(module.name)
    for name in LATE_IMPORTS:
        importlib.import_module(name)


def _fork(
    request: ForkRequest,
    control: socket.socket,
    protected: Collection[int],
    work: Callable[[Mode, int], None],
) -> bytes:
    """Fork twice, so that the supervisor adopts the watchdog; return `WORKER WATCHDOG` pids."""
    here, there = os.pipe()
    middle = os.fork()
    if not middle:
        middle = os.getpid()
        if os.fork():
            os._exit(0)
        control.close()
        os.close(here)
        _wait_until_adopted(middle)
        _run_watchdog(request, there, protected, work)
    for fd in (there, request.data, request.output):
        os.close(fd)
    os.waitpid(middle, 0)
    pids = os.read(here, 64)
    os.close(here)
    return pids


def _run_watchdog(
    request: ForkRequest,
    answer_fd: int,
    protected: Collection[int],
    work: Callable[[Mode, int], None],
) -> None:
    """Start the worker and end with it; the supervisor reaps the zombie."""
    try:
        os.setsid()  # apart from the fork server, which is paused at times
        watchdog = os.getpid()
        parent_watch.die_with_parent()
        if not (worker := os.fork()):
            os.close(answer_fd)
            os.environ[parent_watch.PARENT] = str(watchdog)
            parent_watch.die_with_parent()
            if request.is_confined:  # a profiler may need a program that gains rights
                seccomp.refuse_signals(protected)
            _become_worker(request, work)
        os.write(answer_fd, b"%d %d" % (worker, watchdog))
        for fd in (answer_fd, request.data, request.output):
            os.close(fd)
        os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    finally:
        os._exit(0)


def _become_worker(request: ForkRequest, work: Callable[[Mode, int], None]) -> None:
    """Set this process up as a worker and run it; never returns."""
    try:
        os.setsid()
        os.dup2(request.output, 1)
        os.dup2(request.output, 2)
        os.close(request.output)
        os.environ |= variables(request.scratch)
        if not request.is_confined:
            os.environ.pop(VARIABLE, None)
        tempfile.tempdir = None  # read TMPDIR again
        languages.set_worker_environment(request.mode, request.scratch)
        os.chdir(request.cwd)
        _reseed()
        work(request.mode, request.data)
    except BaseException:  # noqa: BLE001 (the process ends here: report the reason)
        traceback.print_exc()
    finally:
        os._exit(1)


def _reseed() -> None:
    """Seed numpy, so that workers differ; Python's own `random` reseeds itself after a fork."""
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def _wait_until_adopted(parent: int) -> None:
    """Wait until the supervisor, or another process if it has ended, has adopted this process."""
    while os.getppid() == parent:
        time.sleep(0.001)


__all__ = ["ForkRequest", "import_all_modules", "one_thread", "serve"]
