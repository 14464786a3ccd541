"""A FIFO lock per GPU, across processes, notebooks and users.

Timing locks the GPU exclusively; other jobs share it. The lock is a file with an flock of the
process that uses the GPU, so it is free as soon as that process ends.

Each process also locks a *ticket*, a file that describes it: `UUID.waits.TIME-PID` while it waits,
`UUID.holds.TIME-PID` while it holds the lock exclusively, `UUID.shares.TIME-PID` while it shares
it. Only the oldest waiting ticket may take the lock, so the order is FIFO and a timing is not
starved by validations. A ticket without a lock was left by a process that died, and is ignored.

A warm-up takes no lock: its engine may stop it at any point, together with its locks. It checks
`is_reserved` before each of its steps, and `is_for_validations` before those for timings. The time
of the last timing is the file's modification time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_magics.config import LOCKS

POLL_S = 0.02
REPORT_INTERVAL_S = 1.0
TIMED_LATELY_S = 600.0
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def lock_path(gpu_uuid: str) -> Path:
    """Return the lock file of a GPU, one for all users of this machine."""
    if not LOCKS.is_dir():
        with contextlib.suppress(FileExistsError):
            LOCKS.mkdir()
            LOCKS.chmod(0o1777)  # not subject to the umask, as mkdir's mode is
    return LOCKS / f"{re.sub(r'[^A-Za-z0-9-]', '_', gpu_uuid)}.lock"


@contextmanager
def gpu_lock(
    gpu_uuid: str | None, *, exclusive: bool, purpose: str, on_wait: Callable[[str], None]
) -> Iterator[None]:
    """Hold the GPU's lock in the block; without a GPU do nothing.

    Args:
        gpu_uuid: the GPU; None if there is none.
        exclusive: whether other processes must not use the GPU meanwhile.
        purpose: shown to waiting processes.
        on_wait: receives the holders and their durations, about once a second during the wait.
    """
    if gpu_uuid is None:
        yield
        return
    path = lock_path(gpu_uuid)
    fd = _open(path)
    ticket = _Ticket(path, purpose)
    try:
        _acquire(fd, exclusive, ticket, on_wait)
        ticket.hold("holds" if exclusive else "shares")
        if exclusive:
            os.utime(fd)
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a process forked meanwhile has the file open, too
        os.close(fd)
        ticket.release()


def is_reserved(gpu_uuid: str | None) -> bool:
    """Return whether a process holds the GPU exclusively or waits for it; False without a GPU."""
    if gpu_uuid is None:
        return False
    lock = lock_path(gpu_uuid)
    # In this order: a ticket may change from the first state to the second meanwhile.
    return any(
        is_held(ticket) for state in ("waits", "holds") for ticket in list_tickets(lock, state)
    )


def is_for_validations(gpu_uuid: str | None) -> bool:
    """Return whether processes share the GPU, and none has timed on it lately."""
    if gpu_uuid is None:
        return False
    lock = lock_path(gpu_uuid)
    with contextlib.suppress(OSError):
        if time.time() - lock.stat().st_mtime < TIMED_LATELY_S:
            return False
    return any(map(is_held, list_tickets(lock, "shares")))


def _open(path: Path) -> int:
    """Open the file or create it; Linux refuses O_CREAT on another user's file in such a folder."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, _FLAGS)
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL)
        os.fchmod(fd, 0o666)
        os.utime(fd, (0, 0))  # no timing yet
        return fd
    return os.open(path, _FLAGS)


class _Ticket:
    """A process's place in the queue, and its description while it holds the lock."""

    def __init__(self, lock: Path, purpose: str) -> None:
        self._lock = lock
        self._name = f"{time.monotonic_ns():020d}-{os.getpid()}"
        new = self._path("new")
        self._fd = os.open(new, _FLAGS | os.O_CREAT | os.O_EXCL)
        os.fchmod(self._fd, 0o666)
        os.write(self._fd, f"process {os.getpid()}, {purpose}".encode())
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._at = self._path("waits")
        new.rename(self._at)  # it enters the queue only when it is locked

    def _path(self, state: str) -> Path:
        return self._lock.with_suffix(f".{state}.{self._name}")

    def count_before(self) -> int:
        """Return the number of processes that have waited longer."""
        older = (p for p in list_tickets(self._lock, "waits") if p.name < self._at.name)
        return sum(map(is_held, older))

    def hold(self, state: str) -> None:
        """Mark this process as a holder, exclusive (`holds`) or not (`shares`)."""
        path = self._path(state)
        self._at.rename(path)
        self._at = path
        os.utime(path)  # the time since which it holds the lock
        for other in _holder_tickets(self._lock):
            is_held(other)  # removes tickets of dead processes

    def release(self) -> None:
        """Remove the ticket."""
        self._at.unlink(missing_ok=True)
        os.close(self._fd)


def list_tickets(lock: Path, state: str) -> list[Path]:
    """Return the tickets of a lock in a state, oldest first."""
    return sorted(lock.parent.glob(f"{lock.stem}.{state}.*"))


def _holder_tickets(lock: Path) -> list[Path]:
    """Return the tickets of all holders."""
    return [*list_tickets(lock, "holds"), *list_tickets(lock, "shares")]


def is_held(ticket: Path) -> bool:
    """Return whether a ticket's process still locks it; remove the ticket if not.

    The check takes a shared lock, so that concurrent checks don't mistake it for the owner's.
    """
    try:
        fd = os.open(ticket, _FLAGS)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        with contextlib.suppress(OSError):  # another user's file can't be removed
            ticket.unlink()
        return False
    finally:
        os.close(fd)


def _acquire(fd: int, exclusive: bool, ticket: _Ticket, on_wait: Callable[[str], None]) -> None:
    kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
    start_s, reported_s = time.monotonic(), 0.0
    while not _try_lock(fd, kind, ticket):
        if (now := time.monotonic()) - reported_s > REPORT_INTERVAL_S:
            on_wait(f"waiting {now - start_s:.0f} s for the GPU{_describe_holders(fd, ticket)}")
            reported_s = now
        time.sleep(POLL_S)


def _try_lock(fd: int, kind: int, ticket: _Ticket) -> bool:
    if ticket.count_before():
        return False
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _describe_holders(fd: int, ticket: _Ticket) -> str:
    """Return `, held by process 7, timing softmax, for 3 s · 1 before you`."""
    lock = Path(os.readlink(f"/proc/self/fd/{fd}"))
    holders = [describe_holder(path) for path in _holder_tickets(lock) if is_held(path)]
    n_before = ticket.count_before()
    queue = f" · {n_before} before you" if n_before else ""
    return f", held by {' and '.join(holders) or 'another process'}{queue}"


def describe_holder(ticket: Path) -> str:
    """Return which process has the lock, and for how long."""
    try:
        text = ticket.read_text(errors="replace")[:200]
        seconds = max(0.0, time.time() - ticket.stat().st_mtime)
    except OSError:
        return "another process"
    return f"{text}, for {seconds:.0f} s"
