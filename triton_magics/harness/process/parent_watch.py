"""End a worker when its parent or its engine ends, and dump its stack on request."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import os
import resource
import select
import signal
import threading
from pathlib import Path

from triton_magics.execution.protocol import CODE_CONNECTION_CLOSED
from triton_magics.execution.scratch import SCRATCH, STACK

PARENT = "TRITON_MAGICS_PARENT"  # environment variable: the pid that this process must not outlive
CODE_ORPHANED = 75
CHECK_MS = 500
OOM_SCORE = "500"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies.

    The environment names the parent; without one (a worker run by hand) do nothing.
    """
    if parent := os.environ.get(PARENT):
        die_with(int(parent))


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process, or the program that it becomes, when its parent dies."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(CODE_ORPHANED)


def ancestors() -> list[int]:
    """Return the pids of the supervisor, this process's parent, and of the notebook, its parent.

    Empty without a supervisor (a worker run by hand).
    """
    parent = os.environ.get(PARENT)
    if not parent:
        return []
    pids = [int(parent)]
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{parent}/stat").read_text()
        pids.append(int(stat.rpartition(")")[2].split()[1]))
    return [pid for pid in pids if pid > 1]  # 1 adopts the processes of a notebook that has ended


def prefer_oom_kill() -> None:
    """Make this process the OOM killer's first choice, and disable core files."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    except OSError:  # no /proc, or not writable: the kernel chooses
        pass
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def install_stack_dump_handler(name: str = STACK) -> None:
    """Write Python's stacks to a file at SIGURG, whatever Python or C is doing.

    The main thread handles the signal, as reading a running thread's stack from another thread is
    not safe. SIGUSR1 can't be used: LLVM, which compiles kernels, installs its own handler.

    Args:
        name: the file's name in the worker's scratch folder; without that folder do nothing.
    """
    with contextlib.suppress(KeyError, OSError):
        path = os.path.join(os.environ[SCRATCH], name)
        fd = move_to_high_descriptor(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        faulthandler.register(signal.SIGURG, fd)


def move_to_high_descriptor(fd: int) -> int:
    """Move a descriptor to a high number, out of reach of a stray `os.close(3)`."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 1024 if soft == resource.RLIM_INFINITY else min(soft, 1024)
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(3, limit - 24))
    os.close(fd)
    return moved


def start_hangup_watch(data_fd: int) -> threading.Thread:
    """Start a thread that ends this process when the engine closes the data socket.

    The thread reads nothing: every byte is for the job loop.
    """
    thread = threading.Thread(target=_wait_for_hangup, args=(data_fd,), name="watch", daemon=True)
    thread.start()
    return thread


def _wait_for_hangup(data_fd: int) -> None:
    hangup = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
    poller = select.poll()
    poller.register(data_fd, getattr(select, "POLLRDHUP", 0))
    while True:
        # A descriptor that code under test closes stays open while poll waits on it: poll again.
        events = dict(poller.poll(CHECK_MS)).get(data_fd, 0)
        if events & select.POLLNVAL:
            os._exit(CODE_CONNECTION_CLOSED)
        if events & hangup:
            _kill_process_group()


def _kill_process_group() -> None:
    """Kill this process and, if it leads a process group, the whole group."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(CODE_ORPHANED)


__all__ = [
    "PARENT",
    "ancestors",
    "die_with",
    "die_with_parent",
    "install_stack_dump_handler",
    "move_to_high_descriptor",
    "prefer_oom_kill",
    "start_hangup_watch",
]
