"""A worker does not outlive those it works for."""

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

from triton_magics.engine.protocol import CODE_CONNECTION_CLOSED, WHERE

PARENT = "TRITON_MAGICS_PARENT"  # in the environment: whom this process must not outlive
CODE_ORPHANED = 75
CHECK_MS = 500
OOM_SCORE = "500"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Has the kernel kill this process when its parent dies, who is named in its environment.

    Nothing where nobody is (a worker run by hand).
    """
    parent = os.environ.get(PARENT)
    if not parent:
        return
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):  # it died before we could ask
        os._exit(CODE_ORPHANED)


def be_expendable() -> None:
    """Offers this process first to the out-of-memory killer, and leaves no core file."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(OOM_SCORE)
    except OSError:  # no /proc, or not ours to write: the kernel's own choice stands
        pass
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def tell_where_when_asked(name: str = WHERE) -> None:
    """Has Python's stacks written to a file at SIGURG, whatever Python or C is doing.

    By the main thread, which takes signals before any other: to look at a thread that goes on is
    not safe from another. (LLVM, with which Triton compiles, takes SIGUSR1 for itself.)

    Args:
        name: of the file, in the folder of its own; where there is none, nobody can be told.
    """
    with contextlib.suppress(KeyError, OSError):
        path = os.path.join(os.environ["TRITON_CACHE_DIR"], name)
        fd = out_of_reach(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        faulthandler.register(signal.SIGURG, fd)


def out_of_reach(fd: int) -> int:
    """The same descriptor under a high number, where a stray `os.close(3)` does not find it."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 1024 if soft == resource.RLIM_INFINITY else min(soft, 1024)
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(3, limit - 24))
    os.close(fd)
    return moved


def watch(data_fd: int) -> threading.Thread:
    """Starts the thread that ends this process when the engine's end of the data socket is gone.

    It reads nothing: every byte is the job loop's.
    """
    thread = threading.Thread(target=_until_gone, args=(data_fd,), name="watch", daemon=True)
    thread.start()
    return thread


def _until_gone(data_fd: int) -> None:
    gone = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
    poller = select.poll()
    poller.register(data_fd, getattr(select, "POLLRDHUP", 0))
    while True:
        # A descriptor that code under test closes stays open while poll waits on it: look again.
        events = dict(poller.poll(CHECK_MS)).get(data_fd, 0)
        if events & select.POLLNVAL:
            os._exit(CODE_CONNECTION_CLOSED)
        if events & gone:
            _end_all()


def _end_all() -> None:
    """Ends this process and, where it leads a session of its own, its whole group."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(CODE_ORPHANED)


__all__ = [
    "PARENT",
    "be_expendable",
    "die_with_parent",
    "out_of_reach",
    "tell_where_when_asked",
    "watch",
]
