"""Errors of SQLite and of the disk: what they mean, and how they are explained to the user."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_magics.errors import WorkspaceError
from triton_magics.store.safe_files import STORE

NAME = "lab.db"
TIMEOUT_S = 4.0  # of a lock; then its holder is named
# Primary result codes of SQLite (sqlite.org/rescode.html): an error in SQL, or a damaged file.
_ERROR = 1
_DAMAGED = (11, 17, 20, 24, 26)  # CORRUPT, SCHEMA, MISMATCH, FORMAT, NOTADB
_LOCKED = (5, 6)  # BUSY, LOCKED
_SCHEMA_ERRORS = ("no such table", "no such column", "no such index", "already exists", "malformed")
_OF_CALLERS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of NFS without lockd, of some FUSE


def is_damage(error: sqlite3.Error) -> bool:
    """Return True if the file is damaged, not locked, full or without permission."""
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, _OF_CALLERS):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    if code is None or code & 0xFF in _DAMAGED:  # None: text that is not UTF-8, or our own check
        return True
    return code & 0xFF == _ERROR and any(text in str(error) for text in _SCHEMA_ERRORS)


def is_locked(error: sqlite3.Error) -> bool:
    """Return True if another connection holds a lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _LOCKED


@contextmanager
def translate_errors(action: str, path: Path) -> Iterator[None]:
    """Turn errors of the disk and of SQLite into a WorkspaceError that names the action."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise WorkspaceError(f"{action} failed: {explain_error(error, path)}") from error


def explain_error(error: Exception, path: Path) -> str:
    """Return a sentence on an error of the disk or of SQLite, for the user."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        full, forbidden = error.errno in _FULL, error.errno in _READ_ONLY
        if error.errno in _NO_LOCKS:
            return (
                f"the file system of {path} has no file locks ({text}), so no store is safe there; "
                "choose a workspace on another file system"
            )
    else:
        text = str(error)
        full = "full" in text or "disk I/O" in text
        forbidden = "readonly" in text or "unable to open" in text
    if full:
        return f"the disk of {path} is full or failing ({text}); earlier data is intact"
    if forbidden:
        return f"{path} can't be written ({text})"
    if "locked" in text:
        holder = lock_holder(path / STORE / NAME) or "another process"
        return f"{holder} has locked the store of {path} for {TIMEOUT_S:.0f} s"
    return text


def lock_holder(path: Path) -> str | None:
    """Return the process that holds a lock on a store, `process 4711 (python demo.py)`.

    Source: proc_locks(5).
    """
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    inodes = {str(file.stat().st_ino) for file in files if file.exists()}
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for fields in map(str.split, lines):
        if fields[1] == "->" or fields[3] != "WRITE" or fields[4] == str(os.getpid()):
            continue
        if fields[5].rpartition(":")[2] in inodes:
            return f"process {fields[4]}{_command(fields[4])}"
    return None


def _command(pid: str) -> str:
    """Return ` (python demo.py)`; empty if the process can't be read."""
    try:
        words = Path("/proc", pid, "cmdline").read_text(errors="replace").replace("\0", " ").split()
    except OSError:
        return ""
    return f" ({' '.join(words)[:60]})"
