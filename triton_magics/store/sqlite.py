"""Open the SQLite file safely: migrate it, check it, move a damaged one aside."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from triton_magics.errors import WorkspaceError
from triton_magics.store import projections, sqlite_errors
from triton_magics.store.sqlite_errors import NAME

_PATIENCE_S = 30.0  # for a lock while other processes write
# A whole quick_check reads every page: up to this size that takes some milliseconds.
_SMALL_BYTES = 8 * 2**20
_NETWORK = (
    "9p", "afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "smb3", "smbfs", "vboxsf", "virtiofs",
)  # fmt: skip


# -------------------------------------------------------------------------------- migrations


def _create_events(conn: sqlite3.Connection) -> None:
    conn.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE,"
        " op TEXT NOT NULL, verb TEXT NOT NULL, version TEXT, attempt INTEGER, time TEXT NOT NULL,"
        " json TEXT NOT NULL)"
    )
    conn.execute("CREATE INDEX events_of_op ON events (op, seq)")


def _create_logs(conn: sqlite3.Connection) -> None:
    """Add the size of each log file when last read, and the events still to be written to it."""
    conn.execute("CREATE TABLE logs (op TEXT PRIMARY KEY, size INTEGER NOT NULL)")
    conn.execute(
        "CREATE TABLE unlogged (op TEXT, seq INTEGER, PRIMARY KEY (op, seq)) WITHOUT ROWID"
    )
    conn.execute("INSERT INTO unlogged SELECT op, seq FROM events")


def _index_verbs(conn: sqlite3.Connection) -> None:
    """Add an index by verb: a long history has few events of most verbs."""
    conn.execute("CREATE INDEX events_of_verb ON events (op, verb, seq)")


def _rebuild_only(conn: sqlite3.Connection) -> None:
    """Change no stored table: `migrate` rebuilds those of the current state."""


def _add_since(conn: sqlite3.Connection) -> None:
    """Add the needed version of triton_magics, for the error message of an older release."""
    conn.execute("ALTER TABLE migrations ADD COLUMN since TEXT")


class Migration(NamedTuple):
    """A step from one schema to the next.

    Attributes:
        name: of the step, written into the store.
        change: makes the step within the caller's transaction.
        since: first version of triton_magics that reads the new schema.
    """

    name: str
    change: Callable[[sqlite3.Connection], None]
    since: str


# The tables of the current state are rebuilt from the events after any migration, so a change of
# these tables needs only a migration with a name. So does a change of the events' JSON: this
# release reads the older form, but an older release can't read this one.
MIGRATIONS = (
    Migration("create_events", _create_events, "0.1.0"),
    Migration("create_logs", _create_logs, "0.1.0"),
    Migration("index_verbs", _index_verbs, "0.1.0"),
    Migration("some_shapes_are_no_validation", _rebuild_only, "0.1.0"),
    Migration("name_the_needed_version", _add_since, "0.2.0"),
    Migration("coverage_and_badges_as_values", _rebuild_only, "0.2.0"),
    Migration("language_of_versions", _rebuild_only, "0.2.0"),
    Migration("void_benchmarks_remove_times", _rebuild_only, "0.2.0"),
)


def migrate(conn: sqlite3.Connection) -> None:
    """Migrate an older store, or an empty one, to this schema in one transaction.

    Raises:
        WorkspaceError: the store is newer than this program.
    """
    if _schema(conn) == len(MIGRATIONS):
        return
    with transaction(conn):
        _refuse_newer(conn)
        current = max(_schema(conn), 0)  # damage may make it negative
        conn.execute(
            "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT)"
        )
        for number, step in enumerate(MIGRATIONS[current:], start=current + 1):
            step.change(conn)
            conn.execute("INSERT INTO migrations (number, name) VALUES (?, ?)", (number, step.name))
        rows = [(step.since, number) for number, step in enumerate(MIGRATIONS, start=1)]
        conn.executemany("UPDATE migrations SET since = ? WHERE number = ?", rows)
        conn.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        projections.rebuild(conn)


def _refuse_newer(conn: sqlite3.Connection) -> None:
    """Raise WorkspaceError if the store's schema is later than that of this program."""
    schema = _schema(conn)
    if schema <= len(MIGRATIONS):
        return
    version = _needed_version(conn)
    needed = f"triton_magics {version} or later" if version else "a newer triton_magics"
    raise WorkspaceError(
        f"The store needs {needed} (schema {schema}; this one reads up to {len(MIGRATIONS)}). "
        "Nothing was changed. Upgrade triton_magics, or use another workspace"
    )


def _needed_version(conn: sqlite3.Connection) -> str | None:
    """Return the version that a store names; None if it names none."""
    try:
        row = conn.execute("SELECT since FROM migrations ORDER BY number DESC LIMIT 1").fetchone()
    except sqlite3.OperationalError:  # no such table or column
        return None
    return None if row is None or row[0] is None else str(row[0])


def _schema(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """Run a transaction, all or nothing.

    IMMEDIATE: no other process writes between a read within it and a write based on it.
    """
    _begin(conn)
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _begin(conn: sqlite3.Connection) -> None:
    """Begin a transaction; wait for other processes as long as they make progress.

    Raises:
        sqlite3.OperationalError: one process has locked the store all the time.
    """
    deadline, commits = time.monotonic() + _PATIENCE_S, _count_commits(conn)
    while True:
        try:
            conn.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            before, commits = commits, _count_commits(conn)
            if (
                not sqlite_errors.is_locked(error)
                or before == commits
                or time.monotonic() > deadline
            ):
                raise
        else:
            return


def _count_commits(conn: sqlite3.Connection) -> int | None:
    """Return a number that changes with each commit of others; None if the store is locked."""
    try:
        return int(conn.execute("PRAGMA data_version").fetchone()[0])
    except sqlite3.OperationalError:
        return None


# ----------------------------------------------------------------------------------- opening


class Damage(NamedTuple):
    """Damage that was found after a store was opened.

    Attributes:
        reason: for the user.
        inode: of the damaged file; None: of any.
    """

    reason: str
    inode: int | None = None


class Opened(NamedTuple):
    """A store that was opened.

    Attributes:
        connection: to it.
        note: a sentence if a damaged store was moved aside.
        moved: that damaged store.
    """

    connection: sqlite3.Connection
    note: str | None = None
    moved: Path | None = None


def open_store(folder: Path, *, mounts: str = "", damage: Damage | None = None) -> Opened:
    """Open the folder's store: it is created, migrated and checked.

    Args:
        folder: `.triton_magics`, existing and writable.
        mounts: text of /proc/mounts, to detect a network file system.
        damage: the store is damaged, and is moved aside unless another process has done so.

    Raises:
        WorkspaceError: the store is newer than this program, or a symbolic link.
        sqlite3.OperationalError: locked, disk full, no permission.
    """
    path = folder / NAME
    _refuse_special_files(path)
    with _opening_lock(folder):
        if damage is None or not _is_file(path, damage.inode):
            try:
                return Opened(_open_checked(path, mounts))
            except sqlite3.DatabaseError as error:
                if not sqlite_errors.is_damage(error):
                    raise
                damage = Damage(str(error))
        moved = _move_aside(path)
        place = f"{folder.name}/{moved.name}"
        note = f"The store was damaged ({damage.reason}); it was moved to {place}."
        return Opened(_open_checked(path, mounts), note, moved)


def _is_file(path: Path, inode: int | None) -> bool:
    return path.exists() and inode in (None, path.stat().st_ino)


def _open_checked(path: Path, mounts: str) -> sqlite3.Connection:
    conn = _connect(str(path))
    try:
        mode = "DELETE" if is_network(path, mounts) else "WAL"
        conn.execute(f"PRAGMA journal_mode = {mode}")
        conn.execute("PRAGMA synchronous = FULL")
        _check(conn, whole=path.stat().st_size <= _SMALL_BYTES)
        migrate(conn)
    except UnicodeDecodeError as error:  # of a message that quotes a damaged schema
        conn.close()
        raise sqlite3.DatabaseError("malformed database schema") from error
    except BaseException:
        conn.close()
        raise
    return conn


def _connect(target: str, *, uri: bool = False) -> sqlite3.Connection:
    """Connect in autocommit mode, so that only our own BEGIN starts a transaction."""
    return sqlite3.connect(
        target,
        timeout=sqlite_errors.TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        uri=uri,
    )


def _check(conn: sqlite3.Connection, *, whole: bool) -> None:
    """Raise DatabaseError for a damaged store; unless `whole`, skip the events."""
    names = [
        str(row[0]) for row in conn.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    scopes = [""] if whole else [f"('{name}')" for name in names if name != "events"]
    for scope in scopes:
        (verdict,) = conn.execute(f"PRAGMA quick_check{scope}").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict).splitlines()[-1])


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
def _opening_lock(folder: Path) -> Iterator[None]:
    """Lock the folder: of two processes, the second must not move the repaired store aside."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _refuse_special_files(path: Path) -> None:
    """Raise WorkspaceError for a part of the store that is a folder, a link, a pipe or a socket."""
    names = [path.name + suffix for suffix in ("", "-wal", "-shm", "-journal")]
    for part in map(path.with_name, [*names, "lock"]):
        if part.is_symlink() or (part.exists() and not part.is_file()):
            kind = "a symbolic link" if part.is_symlink() else "not a regular file"
            raise WorkspaceError(
                f"{part} is {kind}; move it away: the store is rebuilt from logs/ where it is gone"
            )


def read_damaged(path: Path) -> Iterator[str]:
    """Yield the texts of the events of a damaged store, as far as they can be read."""
    mode = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    with (
        suppress(sqlite3.Error, UnicodeDecodeError),  # an error's text may be damaged too
        closing(_connect(f"file:{quote(str(path))}?{mode}", uri=True)) as conn,
    ):
        conn.text_factory = bytes
        for (data,) in conn.execute("SELECT json FROM events ORDER BY seq"):
            with suppress(UnicodeDecodeError, AttributeError):
                yield data.decode()


def open_copy(path: Path) -> tuple[sqlite3.Connection, str | None]:
    """Copy a store that can't be written into memory and migrate it; empty without a store.

    Returns:
        the connection, and a sentence if the store could not be read completely.
    """
    _refuse_special_files(path)
    memory = _connect(":memory:")
    try:
        note = _copy(path, memory) if path.exists() else None
        migrate(memory)
    except BaseException:
        memory.close()
        raise
    return memory, note


def _copy(path: Path, memory: sqlite3.Connection) -> str | None:
    """Copy the store into memory; return a sentence if it could not be read completely.

    An immutable connection needs no lock files, but misses the events of a write-ahead log.
    """
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
    return (
        f"The store could not be read ({problem}); its content was taken from logs/ and kernels/."
    )


def _empty(memory: sqlite3.Connection) -> None:
    blank = _connect(":memory:")
    blank.backup(memory)
    blank.close()


def is_network(path: Path, mounts: str) -> bool:
    """Return True for a path on a network file system, where a write-ahead log is not safe.

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
