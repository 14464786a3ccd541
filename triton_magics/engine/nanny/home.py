"""The folder of an engine's workers: who has it, what the dead have left, what nobody uses."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from itertools import islice

from .processes import names_in

STALE_S = 60.0
UNUSED_S = 30 * 86_400.0
MOST_AT_ONCE = 50  # a tenth of a second


def claim(home: str) -> int:
    """Holds the lock that says this folder is in use; the descriptor to keep open."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(home, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def sweep_stale(home: str) -> None:
    """Removes what nannies that were themselves killed left beside `home`."""
    folder = os.path.dirname(home)
    for name in names_in(folder):
        path = os.path.join(folder, name)
        if path != home and _abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _abandoned(path: str) -> bool:
    """Whether nobody holds its lock; a folder of the last minute may be about to be claimed."""
    try:
        if time.time() - os.stat(path).st_mtime < STALE_S:
            return False
        lock = os.open(os.path.join(path, "lock"), os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def sweep_unused(home: str) -> None:
    """Removes what was compiled of sources that no job has used for a month, some at a time.

    Whoever uses such a folder touches it first.
    """
    compiled = os.path.join(os.path.dirname(os.path.dirname(home)), "compiled")
    folders = [os.path.join(compiled, name) for name in names_in(compiled)]
    ours = [folder for folder in folders if not os.path.islink(folder)]
    sources = [os.path.join(folder, name) for folder in ours for name in names_in(folder)]
    for path in islice(filter(_is_unused, sources), MOST_AT_ONCE):
        gone = f"{path}.gone"
        with contextlib.suppress(OSError):  # another nanny was first
            os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)


def _is_unused(path: str) -> bool:
    try:
        return not os.path.islink(path) and time.time() - os.stat(path).st_mtime > UNUSED_S
    except OSError:
        return False
