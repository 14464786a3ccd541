"""The folder of a supervisor's workers: its lock, and the removal of stale folders."""

from __future__ import annotations

import _thread  # threading takes longer to import than all of this
import contextlib
import fcntl
import os
import time
from itertools import islice

from .process_table import kill_marked, list_folder

STALE_S = 60.0
NAME_LENGTH = 12  # of the folders that `execution.scratch.new_name` names
_DIGITS = frozenset("0123456789abcdef")
UNUSED_S = 30 * 86_400.0
_removing = _thread.allocate_lock()
MAX_AT_ONCE = 50  # a tenth of a second


def claim(home: str) -> int:
    """Lock this folder as in use; return the descriptor to keep open."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(home, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def remove_tree(path: str) -> None:
    """Remove a folder of a version as far as possible; links are not followed.

    Its folders may be nested deeper than a path may be long, or than Python may recurse: those of
    the second level are moved up, until there is none.
    """
    if os.path.islink(path):
        return
    n_moved = 0
    with _removing, contextlib.suppress(OSError):  # what can't be removed stays
        while folders := _remove_files(path):
            for folder in folders:
                for inner in _remove_files(folder):
                    n_moved += 1
                    os.rename(inner, os.path.join(path, f".{os.getpid()}.{n_moved}"))
                os.rmdir(folder)
        os.rmdir(path)


def remove_later(path: str) -> None:
    """Take a folder away at once, and remove it in a thread: a deep one takes seconds."""
    removed = f"{path}.gone"
    with contextlib.suppress(OSError):
        os.rename(path, removed)
        _thread.start_new_thread(remove_tree, (removed,))


def sweep_later(home: str) -> None:
    """Remove stale and unused folders in a thread."""
    _thread.start_new_thread(_sweep, (home,))


def _sweep(home: str) -> None:
    sweep_stale(home)
    sweep_unused(home)


def _remove_files(path: str) -> list[str]:
    """Remove all of a folder but its folders, and return those."""
    folders = []
    os.chmod(path, 0o700)
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
    return folders


def sweep_stale(home: str) -> None:
    """Remove the folders of killed processes beside `home`, and end their daemons.

    Folders with other names are left alone: they are not ours.
    """
    folder = os.path.dirname(home)
    for name in list_folder(folder):
        path = os.path.join(folder, name)
        if path != home and _is_ours(name) and _is_abandoned(path):
            kill_marked(name)
            remove_tree(path)


def _is_ours(name: str) -> bool:
    return len(name) == NAME_LENGTH and _DIGITS.issuperset(name)


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
    cache = os.path.dirname(os.path.dirname(home))
    roots = [os.path.join(cache, name) for name in ("compiled", "shared")]
    folders = [os.path.join(root, name) for root in roots for name in list_folder(root)]
    ours = [folder for folder in folders if not os.path.islink(folder)]
    sources = [os.path.join(folder, name) for folder in ours for name in list_folder(folder)]
    for path in islice(filter(_is_unused, sources), MAX_AT_ONCE):
        removed = f"{path}.gone"
        with contextlib.suppress(OSError):  # another supervisor was first
            os.rename(path, removed)
        remove_tree(removed)


def _is_unused(path: str) -> bool:
    try:
        return not os.path.islink(path) and time.time() - os.stat(path).st_mtime > UNUSED_S
    except OSError:
        return False
