"""The open store: its connection, its transactions, the log files that follow it."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from triton_magics.errors import UserError, WorkspaceError
from triton_magics.workspace import database, journal
from triton_magics.workspace.files import STORE, Folder
from triton_magics.workspace.kernels import Kernels

_MOUNTS = Path("/proc/mounts")


class _Identity(NamedTuple):
    """A file, whatever it is called."""

    device: int
    inode: int


class Store:
    """One workspace's store, safe for several processes and threads.

    Attributes:
        path: the workspace.
        read_only: the folder can't be written; the store is a copy in memory.
        notes: sentences for the user: repairs, edits that were kept, logs that lag behind.
    """

    def __init__(self, path: Path, kernels: Kernels, *, history: bool) -> None:
        self.path = path
        self.read_only = not _writable(path)
        self.notes: tuple[str, ...] = ()
        self._files = Folder(path)
        self._kernels = kernels
        self._export = history and not self.read_only
        self._lock = threading.RLock()
        with database.in_words("opening the workspace", path):
            self._reopen()

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        with self._lock:
            self._conn.close()

    def note(self, sentence: str | None) -> None:
        """Add a sentence for the user, once."""
        if sentence and sentence not in self.notes:
            self.notes = (*self.notes, sentence)

    @property
    def exports(self) -> bool:
        """Whether logs/ is written as things happen."""
        return self._export

    def reopen_if_damaged(self) -> None:
        """Checks every page; a damaged store is moved aside and rebuilt."""
        if self.read_only:
            return
        with self._lock, database.in_words("repairing the store", self.path):
            try:
                (verdict,) = self._conn.execute("PRAGMA integrity_check(1)").fetchone()
            except sqlite3.DatabaseError as error:
                if not database.is_damage(error):
                    raise
                verdict = str(error)
            if verdict != "ok":
                self._conn.close()
                self._reopen(thorough=True)

    # --------------------------------------------------------------------------- transactions

    @contextmanager
    def reading(self, what: str = "reading the store") -> Iterator[sqlite3.Connection]:
        """The connection; what SQLite raises becomes a WorkspaceError that says what was not done.

        A store that turns out to be damaged is moved aside and rebuilt on the spot; one that was
        deleted or replaced meanwhile is opened anew.
        """
        with self._lock, database.in_words(what, self.path):
            self._follow_the_file(what)
            try:
                yield self._conn
            except sqlite3.DatabaseError as error:
                if not database.is_damage(error):
                    raise
                self._conn.close()
                self._reopen(thorough=True)
                raise WorkspaceError(
                    f"{what} was not done: the store was damaged ({error}) and has been rebuilt "
                    f"from logs/ and kernels/ in {self.path}. Do it again"
                ) from error

    @contextmanager
    def writing(self, what: str, op: str) -> Iterator[sqlite3.Connection]:
        """A transaction, and after it the op's log file is brought up to date."""
        with self.upkeep(what) as conn:
            yield conn
        with self.reading(what) as conn:
            self._settle(conn, op)

    @contextmanager
    def upkeep(self, what: str) -> Iterator[sqlite3.Connection]:
        """A transaction that records no event."""
        if self.read_only:
            raise WorkspaceError(f"{what} was not done: {self.path} can't be written")
        with self.reading(what) as conn, database.transaction(conn):
            yield conn

    def _follow_the_file(self, what: str) -> None:
        """SQLite would go on in a file that has no name any more, and all would be lost with it."""
        if self.read_only or self._conn.in_transaction or self._file == self._file_now():
            return
        if not self.path.is_dir():
            raise WorkspaceError(
                f"{what} was not done: the folder {self.path} is gone. Put it back, or choose "
                "another: %config TritonMagics.workspace = 'FOLDER'"
            )
        gone = self._conn
        self._reopen()
        gone.close()
        self.note("The store was deleted or replaced by someone else; it was opened anew.")

    def _file_now(self) -> _Identity:
        try:
            found = (self.path / STORE / database.NAME).stat()
        except FileNotFoundError:
            return _Identity(0, 0)
        return _Identity(found.st_dev, found.st_ino)

    # -------------------------------------------------------------------------------- opening

    def _reopen(self, *, thorough: bool = False) -> None:
        self._conn = self._open(thorough=thorough)
        self._file = self._file_now()

    def _open(self, *, thorough: bool = False) -> sqlite3.Connection:
        folder = self.path / STORE
        if self.read_only:
            conn, note = database.open_copy(folder / database.NAME)
        else:
            self._prepare()
            mounts = _MOUNTS.read_text() if _MOUNTS.exists() else ""
            conn, note = database.open_store(folder, mounts=mounts, thorough=thorough)
        self.note(note)
        try:
            self._catch_up(conn)
        except sqlite3.DatabaseError as error:
            conn.close()
            if thorough or not database.is_damage(error):
                raise
            return self._open(thorough=True)
        except BaseException:
            conn.close()
            raise
        return conn

    def _prepare(self) -> None:
        self._files.sweep()
        if not self._files.size(f"{STORE}/.gitignore"):
            self._files.replace(f"{STORE}/.gitignore", b"*\n")

    def _catch_up(self, conn: sqlite3.Connection) -> None:
        """Take in what the logs have and, into an empty store, what kernels/ has."""
        known = {str(row[0]) for row in conn.execute("SELECT op FROM ops")}
        with self._noting("logs/ was not read"):
            logged = set(journal.logged_ops(self._files))
            for op in sorted(known | logged):
                self._settle(conn, op)
        if not known:
            with self._noting("kernels/ was not read"):
                self._adopt(conn)

    def _adopt(self, conn: sqlite3.Connection) -> None:
        for op in filter(journal.is_op, self._files.names("kernels")):
            with self._noting(f"kernels/{op} was not read"), database.transaction(conn):
                self._kernels.adopt(conn, op)
            self._settle(conn, op)
            self._put_back(conn, op)
        n_ops, n_events = conn.execute("SELECT COUNT(*), SUM(n_events) FROM ops").fetchone()
        if n_ops:
            self.note(f"The store was rebuilt from logs/ and kernels/: {n_events} events.")

    def _settle(self, conn: sqlite3.Connection, op: str) -> None:
        """Bring store and log file together, if they are not."""
        with self._noting(f"{journal.log_path(op)} lags behind the store"):
            if not journal.differs(conn, self._files, op, export=self._export):
                return
            with database.transaction(conn):
                settled = journal.settle(conn, self._files, op, export=self._export)
            for sentence in settled.notes:
                self.note(sentence)
            if settled.merged:
                self._put_back(conn, op)

    def _put_back(self, conn: sqlite3.Connection, op: str) -> None:
        if self.read_only:
            return
        with self._noting(f"kernels/{op} was not written"), database.transaction(conn):
            self._kernels.put_back(conn, op)

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """Tell what went wrong beside the store; what was recorded stays."""
        try:
            yield
        except (OSError, sqlite3.OperationalError, UserError, WorkspaceError) as error:
            self.note(f"{what}: {database.words(error, self.path)}.")


def _writable(path: Path) -> bool:
    """Whether the workspace, and what there is of its store, can be written."""
    parts = (path, path / STORE, path / STORE / database.NAME)
    return all(os.access(part, os.R_OK | os.W_OK) for part in parts if part.exists())
