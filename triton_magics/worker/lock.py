"""One timing at a time per GPU, across processes, notebooks and users; first come, first served.

Timing holds the GPU alone; all else that runs a version shares it. The lock is a file held by the
process that uses the GPU (flock), so it is free the moment that process is gone.

Beside it each process has a *ticket*, a file of its own that it holds too: `UUID.waits.TIME-PID`
while it waits, `UUID.holds.TIME-PID` while it has the lock alone, `UUID.shares.TIME-PID` while it
shares it; in it who it is. Only the oldest ticket may ask for the lock, so nobody is overtaken, and
a timing gets its turn among many validations. A ticket that nobody holds any more is left from a
process that died, and counts for nothing.

A rehearsal takes neither: its engine may stop it at any point, with what it holds. It looks whether
the GPU is `spoken_for` before each of its steps.
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
TELL_S = 1.0
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def lock_path(gpu_uuid: str) -> Path:
    """The lock file of a GPU: one for all users of this machine."""
    if not LOCKS.is_dir():
        with contextlib.suppress(FileExistsError):
            LOCKS.mkdir()
            LOCKS.chmod(0o1777)  # not subject to the umask, as mkdir's mode is
    return LOCKS / f"{re.sub(r'[^A-Za-z0-9-]', '_', gpu_uuid)}.lock"


@contextmanager
def gpu_lock(
    gpu_uuid: str | None, *, alone: bool, what: str, waiting: Callable[[str], None]
) -> Iterator[None]:
    """Holds the GPU's lock, alone or shared; without a GPU it does nothing.

    Args:
        gpu_uuid: None: no GPU, no lock.
        alone: whether nobody else may use the GPU meanwhile.
        what: told to who waits, so that it can say for whom.
        waiting: told who holds it and for how long, about once a second, while it is taken.
    """
    if gpu_uuid is None:
        yield
        return
    path = lock_path(gpu_uuid)
    fd = _open(path)
    ticket = _Ticket(path, what)
    try:
        _acquire(fd, alone, ticket, waiting)
        ticket.hold("holds" if alone else "shares")
        yield
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)  # a process that was forked meanwhile has the file open, too
        os.close(fd)
        ticket.give_back()


def spoken_for(gpu_uuid: str | None) -> bool:
    """Whether somebody has the GPU alone, or waits for it; without a GPU nobody does."""
    if gpu_uuid is None:
        return False
    lock = lock_path(gpu_uuid)
    # In this order: a ticket may go from the first to the second meanwhile.
    return any(is_held(ticket) for state in ("waits", "holds") for ticket in tickets(lock, state))


def _open(path: Path) -> int:
    """The file, whoever made it: Linux refuses O_CREAT on another user's file in such a folder."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, _FLAGS)
    with contextlib.suppress(FileExistsError):
        fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL)
        os.fchmod(fd, 0o666)
        return fd
    return os.open(path, _FLAGS)


class _Ticket:
    """A place in the queue for a lock, and from its turn on the word of who holds it."""

    def __init__(self, lock: Path, what: str) -> None:
        self._lock = lock
        self._name = f"{time.monotonic_ns():020d}-{os.getpid()}"
        new = self._path("new")
        self._fd = os.open(new, _FLAGS | os.O_CREAT | os.O_EXCL)
        os.fchmod(self._fd, 0o666)
        os.write(self._fd, f"process {os.getpid()}, {what}".encode())
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        self._at = self._path("waits")
        new.rename(self._at)  # only now, held, is it in the queue

    def _path(self, state: str) -> Path:
        return self._lock.with_suffix(f".{state}.{self._name}")

    def before(self) -> int:
        """How many wait for the same lock since earlier."""
        older = (p for p in tickets(self._lock, "waits") if p.name < self._at.name)
        return sum(map(is_held, older))

    def hold(self, state: str) -> None:
        """Says from now on who has the lock, alone (`holds`) or not (`shares`)."""
        held = self._path(state)
        self._at.rename(held)
        self._at = held
        os.utime(held)  # since now
        for other in _of_holders(self._lock):
            is_held(other)  # throws away what the dead have left

    def give_back(self) -> None:
        """Leaves the queue, or the lock."""
        self._at.unlink(missing_ok=True)
        os.close(self._fd)


def tickets(lock: Path, state: str) -> list[Path]:
    """The tickets of a lock in a state, the oldest first."""
    return sorted(lock.parent.glob(f"{lock.stem}.{state}.*"))


def _of_holders(lock: Path) -> list[Path]:
    """The tickets of those who have it, alone or not."""
    return [*tickets(lock, "holds"), *tickets(lock, "shares")]


def is_held(ticket: Path) -> bool:
    """Whether its process still has it; one that nobody has is thrown away.

    Who looks shares it for that moment, so that nobody who looks meanwhile takes it for held.
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
        with contextlib.suppress(OSError):  # another user's: not ours to remove
            ticket.unlink()
        return False
    finally:
        os.close(fd)


def _acquire(fd: int, alone: bool, ticket: _Ticket, waiting: Callable[[str], None]) -> None:
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    since, told = time.monotonic(), 0.0
    while not _try(fd, kind, ticket):
        if (now := time.monotonic()) - told > TELL_S:
            waiting(f"waiting {now - since:.0f} s for the GPU{_whom(fd, ticket)}")
            told = now
        time.sleep(POLL_S)


def _try(fd: int, kind: int, ticket: _Ticket) -> bool:
    if ticket.before():
        return False
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _whom(fd: int, ticket: _Ticket) -> str:
    """`, held by process 7, timing softmax, for 3 s · 1 before you`."""
    lock = Path(os.readlink(f"/proc/self/fd/{fd}"))
    held = [holder(path) for path in _of_holders(lock) if is_held(path)]
    before = ticket.before()
    queue = f" · {before} before you" if before else ""
    return f", held by {' and '.join(held) or 'another process'}{queue}"


def holder(ticket: Path) -> str:
    """Who has the lock, and for how long."""
    try:
        text = ticket.read_text(errors="replace")[:200]
        seconds = max(0.0, time.time() - ticket.stat().st_mtime)
    except OSError:
        return "another process"
    return f"{text}, for {seconds:.0f} s"
