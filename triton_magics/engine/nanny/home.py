"""The folder of an engine's workers: who has it, and what the dead have left."""

from __future__ import annotations

import fcntl
import os
import shutil
import time

from .processes import names_in

STALE_S = 60.0


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
