"""The SQLite file: opened safely, migrated, checked, moved aside when it is damaged."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from triton_magics.errors import WorkspaceError
from triton_magics.workspace import tables

NAME = "lab.db"
_TIMEOUT_S = 30.0
# A whole quick_check reads every page: up to this size that takes some milliseconds.
_SMALL_BYTES = 8 * 2**20
_NETWORK = (
    "9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "smb3", "smbfs", "vboxsf", "virtiofs",
)  # fmt: skip
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


# -------------------------------------------------------------------------------- migrations


def _create_events(conn: sqlite3.Connection) -> None:
    conn.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE,"
        " op TEXT NOT NULL, verb TEXT NOT NULL, version TEXT, attempt INTEGER, time TEXT NOT NULL,"
        " json TEXT NOT NULL)"
    )
    conn.execute("CREATE INDEX events_of_op ON events (op, seq)")


def _create_logs(conn: sqlite3.Connection) -> None:
    """What logs/ held when we last looked, and the events that are still to be written there."""
    conn.execute("CREATE TABLE logs (op TEXT PRIMARY KEY, size INTEGER NOT NULL)")
    conn.execute(
        "CREATE TABLE unlogged (op TEXT, seq INTEGER, PRIMARY KEY (op, seq)) WITHOUT ROWID"
    )
    conn.execute("INSERT INTO unlogged SELECT op, seq FROM events")


def _index_verbs(conn: sqlite3.Connection) -> None:
    """What happened to an op, by kind: a long history has few events of most kinds."""
    conn.execute("CREATE INDEX events_of_verb ON events (op, verb, seq)")


def _nothing(conn: sqlite3.Connection) -> None:
    """Only the tables of the current state have changed."""


# The events are the truth; the tables of the current state are made anew after any migration, so a
# change of those alone needs a migration that does nothing but carry a name.
MIGRATIONS: tuple[tuple[str, Callable[[sqlite3.Connection], None]], ...] = (
    ("create_events", _create_events),
    ("create_logs", _create_logs),
    ("index_verbs", _index_verbs),
    ("some_shapes_are_no_validation", _nothing),
)


def migrate(conn: sqlite3.Connection) -> None:
    """Bring an older store, or an empty one, to this schema, in one transaction.

    Raises:
        WorkspaceError: the store is newer than this program.
    """
    if _schema(conn) == len(MIGRATIONS):
        return
    with transaction(conn):
        have = _schema(conn)
        if have > len(MIGRATIONS):
            raise WorkspaceError(
                f"the store was written by a newer triton_magics (schema {have}, this one knows "
                f"{len(MIGRATIONS)}): upgrade triton_magics, or use another workspace"
            )
        conn.execute(
            "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT)"
        )
        for number, (name, change) in enumerate(MIGRATIONS[have:], start=have + 1):
            change(conn)
            conn.execute("INSERT INTO migrations VALUES (?, ?)", (number, name))
        conn.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        tables.rebuild(conn)


def _schema(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """All or nothing. IMMEDIATE: what is read within is still true when it is written."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


# ----------------------------------------------------------------------------------- opening


def open_store(
    folder: Path, *, mounts: str = "", thorough: bool = False
) -> tuple[sqlite3.Connection, str | None]:
    """A connection to the folder's store, made, migrated and checked.

    Args:
        folder: `.triton_magics`, there and writable.
        mounts: text of /proc/mounts; says whether the folder is on a network.
        thorough: check every page of a large store too.

    Returns:
        the connection, and a sentence where a damaged store had to be moved aside.

    Raises:
        WorkspaceError: the store is newer than this program, or a symbolic link.
        sqlite3.OperationalError: locked, no room, no permission.
    """
    path = folder / NAME
    _refuse_links(path)
    with _one_opener(folder):
        try:
            return _open_checked(path, mounts, thorough), None
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            moved = _move_aside(path)
            note = f"The store was damaged ({error}); it was moved to {folder.name}/{moved.name}."
        return _open_checked(path, mounts, thorough), note


def _open_checked(path: Path, mounts: str, thorough: bool) -> sqlite3.Connection:
    conn = _connect(str(path))
    try:
        mode = "DELETE" if is_network(path, mounts) else "WAL"
        conn.execute(f"PRAGMA journal_mode = {mode}")
        conn.execute("PRAGMA synchronous = FULL")
        _check(conn, whole=thorough or path.stat().st_size <= _SMALL_BYTES)
        migrate(conn)
    except UnicodeDecodeError as error:  # of a message that quotes a damaged schema
        conn.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    except BaseException:
        conn.close()
        raise
    return conn


def _connect(target: str, *, uri: bool = False) -> sqlite3.Connection:
    """In autocommit, so that only our own BEGIN starts a transaction."""
    return sqlite3.connect(
        target, timeout=_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=uri
    )


def _check(conn: sqlite3.Connection, *, whole: bool) -> None:
    """Raise DatabaseError for a damaged store; of a large one check all but the events."""
    names = [
        str(row[0]) for row in conn.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    scopes = [""] if whole else [f"('{name}')" for name in names if name != "events"]
    for scope in scopes:
        (verdict,) = conn.execute(f"PRAGMA quick_check{scope}").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict).splitlines()[-1])


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file itself is broken, rather than locked, full or forbidden."""
    return type(error) is sqlite3.DatabaseError


def _move_aside(path: Path) -> Path:
    """Rename the store and its companions to the first free `lab.db.corrupt-N`."""
    number = 1
    while (moved := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    for suffix in ("", "-wal", "-shm", "-journal"):
        old = path.with_name(path.name + suffix)
        if old.exists():
            old.rename(moved.with_name(moved.name + suffix))
    return moved


@contextmanager
def _one_opener(folder: Path) -> Iterator[None]:
    """Two processes must not both find a damaged store and move the second, sound one away."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _refuse_links(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        if path.with_name(path.name + suffix).is_symlink():
            raise WorkspaceError(f"{path.name}{suffix} is a symbolic link: move it away")


def open_copy(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """A private copy in memory of a store that can't be written, migrated; empty without one.

    Returns:
        the connection, and a sentence where the store could not be read whole.
    """
    _refuse_links(path)
    memory = _connect(":memory:")
    try:
        note = _copy(path, memory) if path.exists() else None
        migrate(memory)
    except BaseException:
        memory.close()
        raise
    return memory, note


def _copy(path: Path, memory: sqlite3.Connection) -> str | None:
    """Immutable needs no lock files, but would miss what is still in a write-ahead log."""
    wal = path.with_name(f"{path.name}-wal")
    modes = ("mode=ro", "immutable=1") if wal.exists() else ("immutable=1",)
    problem = ""
    for mode in modes:
        try:
            stored = _connect(f"file:{quote(str(path))}?{mode}", uri=True)
            try:
                stored.backup(memory)
                _check(memory, whole=True)
            finally:
                stored.close()
        except sqlite3.DatabaseError as error:
            problem = str(error)
            _empty(memory)
            continue
        return f"The newest events may be missing: {problem}." if problem else None
    return f"The store could not be read ({problem}); this is what logs/ and kernels/ say."


def _empty(memory: sqlite3.Connection) -> None:
    blank = _connect(":memory:")
    blank.backup(memory)
    blank.close()


def is_network(path: Path, mounts: str) -> bool:
    """Whether a path is on a network file system, where a write-ahead log is not safe.

    Args:
        path: absolute.
        mounts: lines of /proc/mounts: device, mount point, type, ...
    """
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split()
        point = Path(fields[1].replace("\\040", " "))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind in _NETWORK or kind.startswith("fuse.")


# ------------------------------------------------------------------------------------ errors


@contextmanager
def in_words(what: str, path: Path) -> Iterator[None]:
    """Turn what the disk and SQLite raise into a WorkspaceError that says what was not done."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise WorkspaceError(f"{what} was not done: {words(error, path)}") from error


def words(error: Exception, path: Path) -> str:
    """What an error of the disk or of SQLite means for the workspace."""
    if isinstance(error, OSError):
        text = error.strerror or str(error)
        full, forbidden = error.errno in _FULL, error.errno in _READ_ONLY
    else:
        text = str(error)
        full = "full" in text or "disk I/O" in text
        forbidden = "readonly" in text or "unable to open" in text
    if full:
        return f"the disk of {path} is full or failing ({text}); what was saved before is intact"
    if forbidden:
        return f"{path} can't be written ({text})"
    if "locked" in text:
        return f"another process has kept the store of {path} locked for {_TIMEOUT_S:.0f} s"
    return text
