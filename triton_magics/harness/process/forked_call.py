"""Run a function in a fork of this process, which keeps free of what the function does."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from triton_magics.harness.process import parent_watch

MAX_DESCRIPTORS = 1024
POLL_S = 0.005


def run_in_fork(act: Callable[[], object], output: Path, limit_s: float) -> bool:
    """Return True once the function has ended in a fork; False if it takes too long.

    Its processes are killed then. A CUDA context of this process does not work in the fork, so the
    function must not use a GPU where there is one.

    Args:
        act: the function; its result is lost, its exception printed.
        output: file for what it prints.
        limit_s: seconds.
    """
    parent = os.getpid()
    pid = os.fork()
    if not pid:
        _run(act, output, parent)
    try:
        return _wait(pid, time.monotonic() + limit_s)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # with its own child processes
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _wait(pid: int, until: float) -> bool:
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


def _run(act: Callable[[], object], output: Path, parent: int) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        os.environ[parent_watch.PARENT] = str(parent)
        parent_watch.die_with_parent()
        _leave_files(output)
        act()
        code = 0
    except BaseException:  # noqa: BLE001 (the process ends here: report the reason)
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _leave_files(output: Path) -> None:
    """Print into a file, and close all other descriptors, the engine's socket among them."""
    faulthandler.unregister(signal.SIGURG)  # the stack dump file belongs to the worker
    fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    os.closerange(3, MAX_DESCRIPTORS)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)


__all__ = ["run_in_fork"]
