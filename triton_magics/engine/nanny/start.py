"""How a process is started, with nothing open that is not its own."""

from __future__ import annotations

import fcntl
import os
import signal

from . import WORKER_DATA_FD

TYPE_CHECKING = False  # importing typing would take as long as half of this package
if TYPE_CHECKING:
    from typing import Any

# Where the worker finds its data socket: above any number that one of its first three gets moved
# to.
_LOWEST_FD = 10


def start(command: dict[str, Any], data: int, output: int) -> int:
    """Starts a worker or a zygote in its own session, with nothing open but 0 to 3; its pid."""
    if "scratch" in command:
        os.makedirs(command["scratch"], mode=0o700, exist_ok=True)
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


def out_of_the_way(fd: int) -> int:
    """The same descriptor under a number that no worker's own descriptors need; close-on-exec."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FD)
    os.close(fd)
    return moved
