"""Some file descriptors are kept back, for the verdict on a version that opens all there are."""

from __future__ import annotations

import errno
import os
import resource

RESERVE = 64
NONE_LEFT = (
    "no file descriptor is left in the worker: a version opened files or sockets and did not close "
    "them; close them (`with open(...)`) and run it again, in a new worker"
)
_reserved: list[int] = []


def keep_some_back() -> None:
    """Leaves code under test fewer descriptors than this process may have; again: nothing."""
    if _reserved:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return
    limit = soft if hard == resource.RLIM_INFINITY or hard - soft >= RESERVE else soft - RESERVE
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    _reserved.append(limit + RESERVE)


def use_the_rest() -> None:
    """Makes those kept back available, from here on to everyone."""
    if _reserved:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_reserved[0], hard))


def none_left() -> bool:
    """Whether this process can open nothing more."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return ran_out(error)
    return False


def ran_out(error: BaseException) -> bool:
    """Whether it says that there was none left."""
    return isinstance(error, OSError) and error.errno == errno.EMFILE


__all__ = ["NONE_LEFT", "keep_some_back", "none_left", "ran_out", "use_the_rest"]
