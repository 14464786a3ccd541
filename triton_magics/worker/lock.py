"""One timing at a time per GPU, across processes, notebooks and users.

Timing holds the GPU alone; validation and warming share it. The file is held by the process that
uses the GPU, so it is free the moment that process is gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_magics.config import LOCKS

POLL_S = 0.02


def lock_path(gpu_uuid: str) -> Path:
    """The lock file of a GPU: one for all users of this machine."""
    if not LOCKS.is_dir():
        with contextlib.suppress(FileExistsError):
            LOCKS.mkdir()
            LOCKS.chmod(0o1777)  # not subject to the umask, as mkdir's mode is
    return LOCKS / f"{re.sub(r'[^A-Za-z0-9-]', '_', gpu_uuid)}.lock"


@contextmanager
def gpu_lock(
    gpu_uuid: str | None, *, alone: bool, what: str, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Holds the GPU's lock, alone or shared; without a GPU it does nothing.

    Args:
        gpu_uuid: None: no GPU, no lock.
        alone: whether nobody else may use the GPU meanwhile.
        what: written into the file, so that who waits can say for whom.
        waiting: told who holds it, about once a second, while it is taken.
    """
    if gpu_uuid is None:
        yield
        return
    fd = _open(lock_path(gpu_uuid))
    try:
        _acquire(fd, alone, waiting)
        if alone:
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()}, {what}".encode(), 0)
        yield
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """The file, whoever made it: Linux refuses O_CREAT on another user's file in such a folder."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL)
        os.fchmod(fd, 0o666)
        return fd
    return os.open(path, flags)


def _acquire(fd: int, alone: bool, waiting: Callable[[str], None]) -> None:
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    since, told = time.monotonic(), 0.0
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            now = time.monotonic()
            if now - told > 1:
                holder = os.pread(fd, 200, 0).decode(errors="replace") or "another process"
                waiting(f"waiting {now - since:.0f} s for the GPU, held by {holder}")
                told = now
            time.sleep(POLL_S)
