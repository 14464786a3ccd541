"""Processes: their state, descendants and memory."""

from __future__ import annotations

import os
import signal
import time

# In the environment of each process of a supervisor: the name of its home folder.
MARK = "TRITON_MAGICS_SUPERVISOR"
KILL_MARKED_S = 2.0
READ_S = 0.05
# A compile starts a few per core. The end of each costs a core 9 ms: it undoes torch's mappings.
MAX_PROCESSES = max(128, 8 * (os.cpu_count() or 1))
PF_EXITING = 0x4  # among the flags of a process in /proc/PID/stat
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def children() -> set[int]:
    """Return the pids of this process's children, zombies included.

    The list is exact, because only this process reaps them.
    """
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children") as listing:
            return {int(pid) for pid in listing.read().split()}
    except FileNotFoundError:
        return _children_by_parent(me)


def _children_by_parent(parent: int) -> set[int]:
    """Find them in /proc/*/stat, for kernels without CONFIG_PROC_CHILDREN; empty without /proc."""
    pids = (int(name) for name in list_folder("/proc") if name.isdigit())
    return {pid for pid in pids if _parent(pid) == parent}


def _parent(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def is_stopped(pid: int) -> bool:
    """Return True for a process that was stopped by a signal."""
    return _stat(pid)[:1] == [b"T"]


def is_running(pid: int) -> bool:
    """Return True for a process that has not ended, though a signal may have killed it."""
    return _stat(pid)[:1] not in ([], [b"Z"], [b"X"])


def is_ending(pid: int) -> bool:
    """Return True for a process that has ended or is about to: it closes its files."""
    fields = _stat(pid)
    return fields[:1] in ([], [b"Z"], [b"X"]) or bool(int(fields[6]) & PF_EXITING)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on; none if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return []


def list_folder(folder: str) -> list[str]:
    """List a folder; empty if there is none."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def tree(roots: set[int]) -> set[int]:
    """Return these processes and all their descendants."""
    pids: set[int] = set()
    new = roots
    while new:
        pids |= new
        new = {child for pid in new for child in children_of(pid)} - pids
    return pids


def children_of(pid: int) -> set[int]:
    """Return the children of a process, of all its threads."""
    pids: set[int] = set()
    for thread in list_folder(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children") as listing:
                pids.update(map(int, listing.read().split()))
        except OSError:  # it has ended, or the kernel has no such list
            continue
    return pids


def excess(pids: set[int], memory_bytes: int) -> dict[str, str] | None:
    """Return the limit that these processes exceed, with a message; None if they exceed none.

    Shared memory is counted once if the plain sum exceeds the limit.
    """
    if len(pids) > MAX_PROCESSES:
        return {"over": "processes", "error": f"it started more than {MAX_PROCESSES} processes"}
    resident = {pid: _resident_bytes(pid) for pid in pids}
    if sum(resident.values()) <= memory_bytes:
        return None
    used = _own_in_all(resident)
    if used <= memory_bytes:
        return None
    message = f"it took {used / 2**30:.1f} GiB of memory; the limit is {memory_bytes / 2**30:.1f}"
    return {"over": "memory", "error": message}


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _own_in_all(resident: dict[int, int]) -> float:
    """Return the memory of processes, shared memory counted once; bytes.

    One process takes up to about 10 ms to read. Of very many, only the largest are read; the same
    share is assumed for the rest.
    """
    until = time.monotonic() + READ_S
    own = counted = 0
    for pid in sorted(resident, key=resident.__getitem__, reverse=True):
        own += _own_bytes(pid)
        counted += resident[pid]
        if time.monotonic() > until:
            break
    return own * sum(resident.values()) / max(1, counted)


def _own_bytes(pid: int) -> int:
    """Return a process's memory, shared memory divided among its users; bytes."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            kib = next(line.split()[1] for line in rollup if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident_bytes(pid)
    return int(kib) * 1024


def send_signal(pid: int, number: int, *, group: bool = False) -> bool:
    """Send a signal; return False if another user's process may not be send_signal."""
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def kill_marked(name: str) -> None:
    """Kill the processes of a supervisor that has ended.

    Without it nobody adopts the daemons that its workers have started. Their environment tells
    whose they are, unless they have another one.
    """
    deadline = time.monotonic() + KILL_MARKED_S
    while (pids := _find_marked(f"{MARK}={name}".encode())) and time.monotonic() < deadline:
        for pid in pids:
            send_signal(pid, signal.SIGKILL)
        time.sleep(0.005)


def _find_marked(variable: bytes) -> set[int]:
    pids = (int(name) for name in list_folder("/proc") if name.isdigit())
    return {pid for pid in pids if variable in _environment(pid) and _stat(pid)[:1] != [b"Z"]}


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return environ.read().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return []
