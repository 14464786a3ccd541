"""The process that tells a worker in a sandbox which processes on its GPU are no workers.

The driver lists pids, and a process in the sandbox can't read what another one is. So this process
is forked before the worker enters its sandbox. It takes pids, answers with those that are foreign,
and runs no version. Only the judge has a channel to it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from triton_magics.execution import sandbox
from triton_magics.harness.process import measuring_process, parent_watch

WORKER_COMMAND = b"triton_magics.harness"
ANSWER_S = 2.0
MAX_PIDS = 1000
_ORDER_BYTES = 2**16


class _Neighbours:
    def __init__(self, channel: socket.socket, pid: int) -> None:
        self.channel = channel
        self.pid = pid


_processes: list[_Neighbours] = []  # at most one


def is_foreign(pid: int, proc: Path = Path("/proc")) -> bool:
    """Return whether a process exists here and is not a worker; workers take the GPU lock.

    In a container NVML may report the host's process ids; ids that don't exist here are ignored. A
    process that exists and can't be read counts as foreign; in a sandbox `foreign` asks further.
    """
    try:
        command = (proc / str(pid) / "cmdline").read_bytes()
    except PermissionError:
        return True
    except OSError:
        return False
    return pid != os.getpid() and WORKER_COMMAND not in command


def start_if_needed() -> None:
    """Fork the process where this one will enter a sandbox; after the fork of the subject."""
    if not os.environ.get(sandbox.VARIABLE):
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    if child := os.fork():
        theirs.close()
        _processes.append(_Neighbours(ours, child))
        return
    try:
        parent_watch.die_with(parent)
        measuring_process.isolate(theirs)
        _serve(socket.socket(fileno=0))
    finally:
        os._exit(0)


def _serve(channel: socket.socket) -> None:
    while order := channel.recv(_ORDER_BYTES):
        channel.send(json.dumps([pid for pid in json.loads(order) if is_foreign(pid)]).encode())


def pid() -> int | None:
    """Return the pid of the process; None without one."""
    return _processes[0].pid if _processes else None


def foreign(pids: Sequence[object]) -> tuple[int, ...] | None:
    """Return those of the pids that are foreign; None if that is unknown."""
    numbers = [pid for pid in pids if type(pid) is int][:MAX_PIDS]
    if not sandbox.is_active():
        return tuple(filter(is_foreign, numbers))
    if _processes:
        channel = _processes[0].channel
        with suppress(OSError, ValueError):  # it was killed
            channel.settimeout(ANSWER_S)
            channel.send(json.dumps(numbers).encode())
            return tuple(json.loads(channel.recv(_ORDER_BYTES)))
        end()  # a late answer would be taken for that of the next order
    return None


def end() -> None:
    """End the process, if there is one."""
    while _processes:
        process = _processes.pop()
        process.channel.close()
        os.kill(process.pid, signal.SIGKILL)
        os.waitpid(process.pid, 0)


__all__ = ["WORKER_COMMAND", "end", "foreign", "is_foreign", "pid", "start_if_needed"]
