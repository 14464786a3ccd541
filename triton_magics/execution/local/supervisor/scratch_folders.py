"""The folder of a supervisor's workers: its lock, and the removal of stale folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from itertools import islice

from .process_table import list_folder

STALE_S = 60.0
UNUSED_S = 30 * 86_400.0
MAX_AT_ONCE = 50  # a tenth of a second


def claim(home: str) -> int:
    """Lock this folder as in use; return the descriptor to keep open."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(home, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def sweep_stale(home: str) -> None:
    """Remove the folders of killed supervisors beside `home`."""
    folder = os.path.dirname(home)
    for name in list_folder(folder):
        path = os.path.join(folder, name)
        if path != home and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(path: str) -> bool:
    """Return True if no process holds its lock and it is older than a minute."""
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
    """Remove compiled kernels that no job has used for a month, some at a time.

    A worker touches such a folder before it uses it.
    """
    compiled = os.path.join(os.path.dirname(os.path.dirname(home)), "compiled")
    folders = [os.path.join(compiled, name) for name in list_folder(compiled)]
    ours = [folder for folder in folders if not os.path.islink(folder)]
    sources = [os.path.join(folder, name) for folder in ours for name in list_folder(folder)]
    for path in islice(filter(_is_unused, sources), MAX_AT_ONCE):
        removed = f"{path}.gone"
        with contextlib.suppress(OSError):  # another supervisor was first
            os.rename(path, removed)
        shutil.rmtree(removed, ignore_errors=True)


def _is_unused(path: str) -> bool:
    try:
        return not os.path.islink(path) and time.time() - os.stat(path).st_mtime > UNUSED_S
    except OSError:
        return False
