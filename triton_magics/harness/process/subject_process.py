"""The judge and its subject process: the fork that parts them, and the memory that they share.

A worker that judges versions forks once, before it holds anything that a version must not know. The
child, the subject process, alone loads and calls versions. The parent, the judge, makes the inputs,
computes what is expected, compares, and reports. Only inputs and outputs cross, in shared memory.
`subject_link` is the judge's end of the channel between them, `subject_server` the other one.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import os
import signal
import socket
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from triton_magics.execution.sandbox import enter_from_environment
from triton_magics.execution.scratch import STACK
from triton_magics.harness.process import parent_watch, subject_server
from triton_magics.harness.process.subject_link import SubjectFault, SubjectLink
from triton_magics.model import Value

if TYPE_CHECKING:
    import torch

MAP_NORESERVE = 0x4000  # Linux; Python's mmap module names it from 3.13 on
CPU_BYTES = tuple(2**n for n in (38, 36, 34, 32, 30))  # address space; only used pages take memory
_PR_SET_DUMPABLE = 4

_links: list[SubjectLink] = []


def link() -> SubjectLink | None:
    """Return the link to the subject process; None in a process that has none."""
    return _links[0] if _links else None


def start(prepare: Callable[[], object], *, close: int) -> SubjectLink:
    """Fork the subject process, before any thread or CUDA context; only the judge returns.

    Args:
        prepare: called in the subject process before its first request.
        close: the judge's data socket, which the subject process must not have.
    """
    mapped = _map_shared()
    ours, theirs = socket.socketpair()
    judge = os.getpid()
    if not (pid := os.fork()):
        try:
            os.close(close)
            ours.close()
            parent_watch.die_with(judge)
            enter_from_environment()
            subject_server.serve(theirs, mapped, prepare)
        except BaseException:  # noqa: BLE001 (the process ends here: report the reason)
            traceback.print_exc()
        finally:
            os._exit(1)
    theirs.close()
    faulthandler.unregister(signal.SIGURG)
    parent_watch.install_stack_dump_handler(f"{STACK}.judge")
    channel = socket.socket(fileno=parent_watch.move_to_high_descriptor(ours.detach()))
    _links.append(SubjectLink(channel, pid, mapped))
    return _links[0]


def _map_shared() -> mmap.mmap:
    """Return memory that this process shares with its later forks.

    Raises:
        OSError: the system refuses even the smallest size.
    """
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    for n_bytes in CPU_BYTES:
        with contextlib.suppress(OSError, ValueError):
            return mmap.mmap(-1, n_bytes, flags=flags)
    raise OSError("no address space for the memory that a version's process shares")


class Pong(Value):
    """The sum of the bytes of a tensor that was handed over."""

    total: int


def ping(tensor: torch.Tensor) -> Pong:
    """Read a tensor in the subject process."""
    return Pong(total=int(tensor.sum()))


def can_share(link: SubjectLink, device: torch.device) -> bool:
    """Return whether the subject process can read tensors of this device."""
    try:
        sample = link.memory.allocate(8, device).fill_(3)
        reply = link.request(f"{__name__}:ping", Pong, tensor=sample)
    except (RuntimeError, SubjectFault, OSError):
        return False
    return reply.total == 24


def hide_memory() -> None:
    """Refuse this user's other processes to read or trace this one."""
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if prctl:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


__all__ = ["can_share", "hide_memory", "link", "start"]
