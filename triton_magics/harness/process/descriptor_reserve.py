"""Reserve file descriptors, so that a worker can report on a version that uses all of them."""

from __future__ import annotations

import errno
import os
import resource

from triton_magics.exception_text import attribute, is_a

RESERVE = 64
EXHAUSTED = (
    "the worker has no file descriptor left: a version opened files or sockets and did not close "
    "them. Close them (`with open(...)`) and run the command again; it starts a new worker"
)
_reserved: list[int] = []


def reserve_descriptors() -> None:
    """Lower the soft limit, so that code under test can't use the reserve (once)."""
    if _reserved:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    limit = soft if hard == resource.RLIM_INFINITY or hard - soft >= RESERVE else soft - RESERVE
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    _reserved.append(limit + RESERVE)


def release_reserve() -> None:
    """Raise the soft limit to the reserve, for all code in this process.

    Code under test may have lowered the hard limit; then there is less, or nothing.
    """
    if _reserved:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = _reserved[0] if hard == resource.RLIM_INFINITY else min(_reserved[0], hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def is_exhausted() -> bool:
    """Return whether this process can open no more files."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return is_exhaustion_error(error)
    return False


def is_exhaustion_error(error: BaseException) -> bool:
    """Return whether the error says that no descriptor was left."""
    return is_a(error, OSError) and attribute(error, "errno") == errno.EMFILE


__all__ = [
    "EXHAUSTED",
    "is_exhausted",
    "is_exhaustion_error",
    "release_reserve",
    "reserve_descriptors",
]
