"""The server's jobs in SQLite, so that they can be asked for after a restart."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton_magics.errors import WorkspaceError
from triton_magics.serve.job_model import JobFault, JobPhase, JobView

NAME = "server.db"
RESTARTED = "the server ended while the job was under way"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, client TEXT NOT NULL, server TEXT NOT NULL,
    is_final INTEGER NOT NULL, changed REAL NOT NULL, json TEXT NOT NULL) WITHOUT ROWID
"""


class JobRecords:
    """The jobs of all servers on a workspace; safe in any thread.

    Args:
        folder: of the store; None: in memory, for a workspace that can't be written.
    """

    def __init__(self, folder: Path | None) -> None:
        self.server = _process_of(os.getpid())
        self._lock = threading.Lock()
        path = _create(folder / NAME) if folder else ":memory:"
        self._conn = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        with self._errors():
            self._conn.execute("PRAGMA journal_mode = WAL")
            self._conn.execute("PRAGMA synchronous = NORMAL")
            self._conn.execute(_SCHEMA)
        self._end_abandoned()

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            self._conn.close()

    def save(self, view: JobView) -> None:
        """Write a job as it is now."""
        row = (view.id, view.client, self.server, view.state.is_final, time.time())
        with self._errors():
            self._conn.execute(
                "INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?)",
                (*row, view.model_dump_json()),
            )

    def find(self, job_id: str) -> JobView | None:
        """Return a job; None where there is none of that id."""
        rows = self._query("SELECT json FROM jobs WHERE id = ?", job_id)
        return next(map(JobView.model_validate_json, rows), None)

    def newest(self, client: str, limit: int) -> tuple[JobView, ...]:
        """Return the newest jobs of a client."""
        sql = "SELECT json FROM jobs WHERE client = ? ORDER BY changed DESC LIMIT ?"
        return tuple(map(JobView.model_validate_json, self._query(sql, client, limit)))

    def remove_ended(self, older_than_s: float, client: str | None = None) -> int:
        """Remove jobs that ended so long ago; return how many.

        Args:
            older_than_s: since their end, seconds.
            client: only the jobs of this one.
        """
        before = time.time() - older_than_s
        sql = "DELETE FROM jobs WHERE is_final AND changed <= ? AND (? IS NULL OR client = ?)"
        with self._errors():
            return self._conn.execute(sql, (before, client, client)).rowcount

    def _end_abandoned(self) -> None:
        """End the jobs of servers that do not run any more; their partial results stay."""
        with self._errors():
            rows = self._conn.execute(
                "SELECT json FROM jobs WHERE NOT is_final AND server != ?", (self.server,)
            ).fetchall()
            servers = self._conn.execute(
                "SELECT server FROM jobs WHERE NOT is_final AND server != ?", (self.server,)
            ).fetchall()
        for (text,), (server,) in zip(rows, servers, strict=True):
            if _process_of(int(server.partition(":")[0])) != server:
                self.save(_ended(JobView.model_validate_json(text)))

    def _query(self, sql: str, *values: object) -> list[str]:
        with self._errors():
            return [text for (text,) in self._conn.execute(sql, values)]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise WorkspaceError(f"the store of the jobs failed: {error}") from error


def _create(path: Path) -> Path:
    """Create the file for this user alone, if there is none."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


def _process_of(pid: int) -> str:
    """Return `pid:start time`, which no other process has; `pid:` where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return f"{pid}:"
    return f"{pid}:{text.rpartition(')')[2].split()[19]}"


def _ended(view: JobView) -> JobView:
    fault = JobFault(error="ServerRestarted", message=RESTARTED, http=503)
    times = {**view.times, JobPhase.FAILED.value: time.time()}
    return view.evolve(
        state=JobPhase.FAILED, times=times, fault=fault, position=None, waits_for=None
    )


__all__ = ["JobRecords"]
