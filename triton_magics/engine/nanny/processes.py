"""Processes: who they are, what they have started, what they take."""

from __future__ import annotations

import os
import time

LOOK_S = 0.05
MAX_PROCESSES = 512  # a compile on a machine of many cores starts a few dozen
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def children() -> set[int]:
    """The pids of this process's children, zombies too.

    Only this process reaps them, so no entry vanishes while the kernel writes the list: it is
    exact.
    """
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as listing:
            return {int(pid) for pid in listing.read().split()}
    except FileNotFoundError:
        return _children_by_parent(me)


def _children_by_parent(parent: int) -> set[int]:
    """The same from /proc/*/stat, for kernels without CONFIG_PROC_CHILDREN; empty without /proc."""
    pids = (int(name) for name in names_in("/proc") if name.isdigit())
    return {pid for pid in pids if _parent(pid) == parent}


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None


def names_in(folder: str) -> list[str]:
    """What is in a folder; nothing where there is none."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def tree(roots: set[int]) -> set[int]:
    """Those processes and all that they have started and not left behind."""
    found: set[int] = set()
    new = roots
    while new:
        found |= new
        new = {child for pid in new for child in children_of(pid)} - found
    return found


def children_of(pid: int) -> set[int]:
    """The children of a process, whichever of its threads started them."""
    found: set[int] = set()
    for thread in names_in(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as listing:
                found.update(map(int, listing.read().split()))
        except OSError:  # it is gone, or the kernel does not tell
            continue
    return found


def excess(pids: set[int], memory_bytes: int) -> dict[str, str] | None:
    """What these processes have too much of, and a sentence about it; None: nothing.

    Memory that several share is counted once, where the plain sum would be too much.
    """
    if len(pids) > MAX_PROCESSES:
        return {"over": "processes", "error": f"it started more than {MAX_PROCESSES} processes"}
    resident = {pid: _resident_bytes(pid) for pid in pids}
    if sum(resident.values()) <= memory_bytes:
        return None
    used = _own_in_all(resident)
    if used <= memory_bytes:
        return None
    said = f"it took {used / 2**30:.1f} GiB of memory and may take {memory_bytes / 2**30:.1f}"
    return {"over": "memory", "error": said}


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _own_in_all(resident: dict[int, int]) -> float:
    """What processes have in all, memory that several share counted once; bytes.

    To ask for one takes up to some 10 ms: of very many only the first are asked, and the others are
    taken to share as much.
    """
    until = time.monotonic() + LOOK_S
    own = seen = 0
    for pid in sorted(resident, key=resident.__getitem__, reverse=True):
        own += _own_bytes(pid)
        seen += resident[pid]
        if time.monotonic() > until:
            break
    return own * sum(resident.values()) / max(1, seen)


def _own_bytes(pid: int) -> int:
    """A process's share of memory: what it shares with others is divided among them."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            kib = next(line.split()[1] for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident_bytes(pid)
    return int(kib) * 1024


def signalled(pid: int, number: int, *, group: bool = False) -> bool:
    """Whether the signal could be sent (to a process that runs as another user it can't)."""
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True
