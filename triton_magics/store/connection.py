"""Open the store: its connection, its transactions, and the log files that mirror it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from triton_magics.errors import UserError, WorkspaceError
from triton_magics.store import event_log, queries, sqlite, sqlite_errors
from triton_magics.store.kernel_files import KernelFiles
from triton_magics.store.safe_files import STORE, Folder

_MOUNTS = Path("/proc/mounts")


class _Identity(NamedTuple):
    """Device and inode of a file, which identify it under any name."""

    device: int
    inode: int


class Store:
    """One workspace's store, safe for several processes and threads.

    Attributes:
        path: the workspace.
        read_only: the folder can't be written; the store is a copy in memory.
        notes: sentences for the user: repairs, recorded edits, logs that lag behind.
    """

    def __init__(self, path: Path, kernels: KernelFiles, *, history: bool) -> None:
        self.path = path
        self.read_only = not _writable(path)
        self.notes: tuple[str, ...] = ()
        self._files = Folder(path)
        self._kernels = kernels
        self._export = history and not self.read_only
        self._lock = threading.RLock()
        with sqlite_errors.translate_errors("opening the workspace", path):
            self._reopen()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._lock:
            self._conn.close()

    def note(self, sentence: str | None) -> None:
        """Add a sentence for the user, once."""
        if sentence and sentence not in self.notes:
            self.notes = (*self.notes, sentence)

    @property
    def exports(self) -> bool:
        """True if each event is written to logs/ too."""
        return self._export

    def reopen_if_damaged(self) -> None:
        """Check every page; move a damaged store aside and rebuild it."""
        if self.read_only:
            return
        with self._lock, sqlite_errors.translate_errors("repairing the store", self.path):
            try:
                (verdict,) = self._conn.execute("PRAGMA integrity_check(1)").fetchone()
            except sqlite3.DatabaseError as error:
                if not sqlite_errors.is_damage(error):
                    raise
                verdict = str(error)
            if verdict == "ok":
                verdict = queries.find_damaged_event(self._conn) or "ok"
            if verdict != "ok":
                self._reopen_damaged(verdict)

    # --------------------------------------------------------------------------- transactions

    @contextmanager
    def reading(self, action: str = "reading the store") -> Iterator[sqlite3.Connection]:
        """Give the connection; errors of SQLite become a WorkspaceError that names the action.

        A damaged store is moved aside and rebuilt at once. A store that was deleted or replaced
        meanwhile is opened again.
        """
        with self._lock, sqlite_errors.translate_errors(action, self.path):
            self._reopen_if_replaced(action)
            try:
                yield self._conn
            except sqlite3.DatabaseError as error:
                if not sqlite_errors.is_damage(error):
                    raise
                self._reopen_damaged(str(error))
                raise WorkspaceError(
                    f"{action} failed: the store was damaged ({error}) and has been rebuilt "
                    f"from logs/ and kernels/ in {self.path}. Repeat the step"
                ) from error

    @contextmanager
    def writing(self, action: str, op: str) -> Iterator[sqlite3.Connection]:
        """Run a transaction, then bring the op's log file up to date."""
        with self.transaction(action) as conn:
            yield conn
        with self.reading(action) as conn:
            self._sync_log(conn, op, restore=True)

    @contextmanager
    def transaction(self, action: str) -> Iterator[sqlite3.Connection]:
        """Run a transaction that records no event."""
        if self.read_only:
            raise WorkspaceError(f"{action} failed: {self.path} can't be written")
        with self.reading(action) as conn, sqlite.transaction(conn):
            yield conn

    def _reopen_if_replaced(self, action: str) -> None:
        """Open the store again if its file was deleted or replaced.

        SQLite would continue in the deleted file, and every later event would be lost.
        """
        if self.read_only or self._conn.in_transaction or self._file == self._identify_file():
            return
        if not self.path.is_dir():
            raise WorkspaceError(
                f"{action} failed: the folder {self.path} is missing. Restore it, or choose "
                "another workspace"
            )
        old_conn = self._conn
        self._reopen()
        old_conn.close()
        self.note("The store was deleted or replaced by another program; it was opened again.")

    def _identify_file(self) -> _Identity:
        try:
            status = (self.path / STORE / sqlite_errors.NAME).stat()
        except FileNotFoundError:
            return _Identity(0, 0)
        return _Identity(status.st_dev, status.st_ino)

    # -------------------------------------------------------------------------------- opening

    def _reopen(self, damage: sqlite.Damage | None = None) -> None:
        self._conn = self._open(damage)
        self._file = self._identify_file()

    def _reopen_damaged(self, reason: str) -> None:
        """Move the store aside and rebuild it; a copy in memory is only read again."""
        self._conn.close()
        self._reopen(sqlite.Damage(reason, self._file.inode))

    def _open(self, damage: sqlite.Damage | None = None) -> sqlite3.Connection:
        folder = self.path / STORE
        if self.read_only:
            opened = sqlite.Opened(*sqlite.open_copy(folder / sqlite_errors.NAME))
        else:
            self._prepare()
            mounts = _MOUNTS.read_text() if _MOUNTS.exists() else ""
            opened = sqlite.open_store(folder, mounts=mounts, damage=damage)
        self.note(opened.note)
        conn = opened.connection
        try:
            self._import_files(conn)
            self._salvage(conn, opened.moved)
        except sqlite3.DatabaseError as error:
            conn.close()
            if damage or self.read_only or not sqlite_errors.is_damage(error):
                raise
            return self._open(sqlite.Damage(str(error), self._identify_file().inode))
        except BaseException:
            conn.close()
            raise
        return conn

    def _salvage(self, conn: sqlite3.Connection, moved: Path | None) -> None:
        """Import what only a damaged store has: events that are not in logs/."""
        if moved is None:
            return
        with self._note_errors(f"{moved.name} was not read"), sqlite.transaction(conn):
            ops = event_log.import_events(conn, sqlite.read_damaged(moved))
        for op in ops:
            self._sync_log(conn, op)
            self._restore_files(conn, op)

    def _prepare(self) -> None:
        self._files.remove_drafts()
        if not self._files.size(f"{STORE}/.gitignore"):
            self._files.replace(f"{STORE}/.gitignore", b"*\n")

    def _import_files(self, conn: sqlite3.Connection) -> None:
        """Import the events of logs/ and, into an empty store, the files of kernels/."""
        stored = {str(row[0]) for row in conn.execute("SELECT op FROM ops")}
        n_imported = 0
        with self._note_errors("logs/ was not read"):
            logged = set(event_log.logged_ops(self._files))
            for op in sorted(stored | logged):
                n_imported += self._sync_log(conn, op)
        if not stored:
            with self._note_errors("kernels/ was not read"):
                n_imported += self._import_kernels(conn)
        if n_imported and not stored:
            self.note(f"The store was rebuilt from logs/ and kernels/: {n_imported} events.")

    def _import_kernels(self, conn: sqlite3.Connection) -> int:
        n_imported = 0
        for op in filter(event_log.is_op, self._files.names("kernels")):
            with self._note_errors(f"kernels/{op} was not read"), sqlite.transaction(conn):
                n_imported += self._kernels.import_files(conn, op)
            self._sync_log(conn, op)
            self._restore_files(conn, op)
        return n_imported

    def _sync_log(self, conn: sqlite3.Connection, op: str, *, restore: bool = False) -> int:
        """Bring the store and the op's log file to the same events (see `event_log.sync_log`).

        Returns:
            number of imported events.
        """
        with self._note_errors(f"{event_log.log_path(op)} lags behind the store"):
            if not event_log.needs_sync(conn, self._files, op, export=self._export):
                return 0
            with sqlite.transaction(conn):
                outcome = event_log.sync_log(
                    conn, self._files, op, export=self._export, restore=restore
                )
            for sentence in outcome.notes:
                self.note(sentence)
            if outcome.merged:
                self._restore_files(conn, op)
            return outcome.merged
        return 0

    def _restore_files(self, conn: sqlite3.Connection, op: str) -> None:
        if self.read_only:
            return
        with self._note_errors(f"kernels/{op} was not written"), sqlite.transaction(conn):
            self._kernels.restore_files(conn, op)

    @contextmanager
    def _note_errors(self, problem: str) -> Iterator[None]:
        """Turn an error of the files beside the store into a note; recorded events stay."""
        try:
            yield
        except (OSError, sqlite3.OperationalError, UserError, WorkspaceError) as error:
            self.note(f"{problem}: {sqlite_errors.explain_error(error, self.path)}.")


def _writable(path: Path) -> bool:
    """Return True if the workspace and the existing parts of its store can be written."""
    parts = (path, path / STORE, path / STORE / sqlite_errors.NAME)
    return all(os.access(part, os.R_OK | os.W_OK) for part in parts if part.exists())
