"""Start a process with no open descriptors but its own."""

from __future__ import annotations

import fcntl
import os
import signal

from . import WORKER_DATA_FD

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any

# Above the descriptors of a worker, so that none of them is overwritten.
_LOWEST_FD = 10


def start(command: dict[str, Any], data: int, output: int) -> int:
    """Start a worker or fork server in its own session, with only 0 to 3 open; return its pid."""
    if "scratch" in command:
        make_scratch(command["scratch"])
    os.chdir(command["cwd"])
    try:
        return os.posix_spawnp(
            command["argv"][0],
            command["argv"],
            {**command["env"], "TRITON_MAGICS_PARENT": str(os.getpid())},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
                (os.POSIX_SPAWN_DUP2, data, WORKER_DATA_FD),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP),
        )
    finally:
        os.chdir("/")


def make_scratch(path: str) -> None:
    """Create a worker's folder and in it the one for its temporary files."""
    os.makedirs(os.path.join(path, "tmp"), mode=0o700, exist_ok=True)


def move_to_high_descriptor(fd: int) -> int:
    """Move a descriptor above those of a worker; close-on-exec."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    os.close(fd)
    return moved
