"""A worker's scratch folder: the environment variables that name it, and the names in it."""

from __future__ import annotations

import os

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


__all__ = ["SCRATCH", "SOURCES", "STACK", "TEMPORARY", "fits", "variables"]
