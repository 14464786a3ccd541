"""Scratch folders: how they are made, the variables that name a worker's, and the names in it.

A process that is killed leaves its folders. The next supervisor removes those in `CHILDREN` whose
lock nobody holds (`execution.local.supervisor.scratch_folders`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from triton_magics.config import cache_dir

# The folder in the cache that holds the folders of processes.
CHILDREN = "children"
LOCK = "lock"

# The environment variable that names the folder.
SCRATCH = "TRITON_MAGICS_SCRATCH"
# A file: Python's stacks, after a SIGURG; `stack.PID`: those of a process that compiles.
STACK = "stack"
# The folder for the sources of jobs: `sources/<hash>/<version>.py`.
SOURCES = "sources"
# The folder for temporary files; the supervisor makes it.
TEMPORARY = "tmp"
# A Unix socket's path has at most 107 bytes; multiprocessing appends 33 (unix(7)):
# `/pymp-xxxxxxxx/listener-xxxxxxxx`.
MAX_TEMPORARY_BYTES = 107 - 33


def fits(temporary: str) -> bool:
    """Return whether a temporary folder's path is short enough for multiprocessing's sockets."""
    return len(os.fsencode(temporary)) <= MAX_TEMPORARY_BYTES


def variables(scratch: str) -> dict[str, str]:
    """Return the environment variables of a worker with this folder.

    TMPDIR is left out if the path is too long for multiprocessing's sockets.
    """
    temporary = os.path.join(scratch, TEMPORARY)
    if not fits(temporary):
        return {SCRATCH: scratch}
    return {SCRATCH: scratch, "TMPDIR": temporary}


def new_name() -> str:
    """Return a name for a folder in `CHILDREN`; the sweeper leaves all other names alone."""
    return uuid.uuid4().hex[:12]


@contextlib.contextmanager
def owned_folder() -> Iterator[Path]:
    """Make a folder that is removed after the block, or by the next supervisor if we are killed.

    Raises:
        OSError: neither the cache nor the temporary folder can be written.
    """
    folder = _make_folder()
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make_folder() -> Path:
    name = new_name()
    with contextlib.suppress(OSError):  # the cache can't be written
        folder = cache_dir() / CHILDREN / name
        folder.mkdir(mode=0o700, parents=True)
        return folder
    folder = own_temporary_folder() / CHILDREN / name
    folder.mkdir(mode=0o700, parents=True)
    return folder


def own_temporary_folder() -> Path:
    """Return a folder that no other user can have made: its name is known to all."""
    folder = Path(tempfile.gettempdir()) / f"triton_magics-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
        return folder
    return Path(tempfile.mkdtemp(prefix="triton_magics-"))


__all__ = [
    "CHILDREN",
    "SCRATCH",
    "SOURCES",
    "STACK",
    "TEMPORARY",
    "fits",
    "new_name",
    "own_temporary_folder",
    "owned_folder",
    "variables",
]
