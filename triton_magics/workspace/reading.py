"""What is read from the store: events, attempts, verdicts."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from typing import NamedTuple

from triton_magics.errors import WorkspaceError
from triton_magics.model import (
    Benchmark,
    Compilation,
    DeviceKind,
    Event,
    KernelSource,
    OpFacts,
    State,
    Validation,
    Verb,
)
from triton_magics.workspace.modules import module_path


def event_at(conn: sqlite3.Connection, seq: int) -> Event:
    """The event with this number.

    Raises:
        WorkspaceError: another version of this program wrote what this one can't read.
    """
    (text,) = conn.execute("SELECT json FROM events WHERE seq = ?", (seq,)).fetchone()
    return parsed(seq, text)


def parsed(seq: int, text: str) -> Event:
    """An event from its JSON."""
    try:
        return Event.model_validate_json(text)
    except ValueError as error:
        raise WorkspaceError(
            f"event {seq} of the store can't be read; another triton_magics wrote it: {error}"
        ) from error


def open_ops(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Names of the ops that anything happened to, the oldest first."""
    rows = conn.execute("SELECT op FROM ops ORDER BY first_seq")
    return tuple(str(row[0]) for row in rows)


def own_ops(conn: sqlite3.Connection) -> dict[str, OpFacts]:
    """The user's own ops and what is known about them."""
    rows = conn.execute("SELECT op FROM ops WHERE facts_seq IS NOT NULL ORDER BY first_seq")
    found = {str(op): facts(conn, op) for (op,) in rows.fetchall()}
    return {op: known for op, known in found.items() if known is not None}


def n_events(conn: sqlite3.Connection, op: str) -> int:
    """How many events an op has."""
    row = conn.execute("SELECT n_events FROM ops WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def state(conn: sqlite3.Connection, op: str) -> State:
    """Where an op stands; one without events is at its start."""
    row = conn.execute("SELECT state FROM ops WHERE op = ?", (op,)).fetchone()
    found: State = row[0] if row else "start"
    return found


def known_version(conn: sqlite3.Connection, op: str, number: int) -> str | None:
    """The whole name of a version by its number: 2 -> `v2_tiling`."""
    row = conn.execute(
        "SELECT version FROM versions WHERE op = ? AND number = ?", (op, number)
    ).fetchone()
    return str(row[0]) if row else None


def version_names(conn: sqlite3.Connection, op: str) -> tuple[str, ...]:
    """Whole names of the op's versions, by number."""
    rows = conn.execute("SELECT version FROM versions WHERE op = ? ORDER BY number", (op,))
    return tuple(str(row[0]) for row in rows)


def reference(conn: sqlite3.Connection, op: str) -> str | None:
    """Source of an own op's reference, as it was last recorded."""
    event = _marked(conn, "SELECT reference_seq FROM ops WHERE op = ?", op)
    return event.reference if event else None


def facts(conn: sqlite3.Connection, op: str) -> OpFacts | None:
    """Facts of an own op."""
    event = _marked(conn, "SELECT facts_seq FROM ops WHERE op = ?", op)
    return event.facts if event else None


def latest_benchmark(conn: sqlite3.Connection, op: str) -> Benchmark | None:
    """The newest benchmark that passed."""
    event = _marked(conn, "SELECT benchmark_seq FROM ops WHERE op = ?", op)
    return event.result if event and isinstance(event.result, Benchmark) else None


def seqs(
    conn: sqlite3.Connection, op: str, *, verbs: Collection[Verb] | None, limit: int | None
) -> tuple[int, ...]:
    """Numbers of an op's newest events, the oldest first; all, unless there is a limit."""
    most = -1 if limit is None else limit
    if verbs is None:
        rows = conn.execute(
            "SELECT seq FROM events WHERE op = ? ORDER BY seq DESC LIMIT ?", (op, most)
        )
    else:
        rows = conn.execute(
            "SELECT seq FROM events INDEXED BY events_of_verb WHERE op = ? AND verb IN"
            " (SELECT value FROM json_each(?)) ORDER BY seq DESC LIMIT ?",
            (op, json.dumps(list(verbs)), most),
        )
    return tuple(int(row[0]) for row in rows.fetchall())[::-1]


def verdict(conn: sqlite3.Connection, source: KernelSource) -> Validation | None:
    """The validation that stands on a source."""
    return _validation(
        conn,
        "SELECT seq FROM verdicts WHERE op = ? AND version = ? AND sha256 = ?",
        (source.op, source.version, source.sha256),
    )


def passed(conn: sqlite3.Connection, key: tuple[str, str, str, DeviceKind]) -> Validation | None:
    """The newest validation of (op, sha256, dtype, device kind), if it passed."""
    return _validation(
        conn,
        "SELECT seq FROM passes WHERE op = ? AND sha256 = ? AND dtype = ? AND device_kind = ?"
        " AND passed",
        key,
    )


def _validation(conn: sqlite3.Connection, query: str, key: tuple[str, ...]) -> Validation | None:
    row = conn.execute(query, key).fetchone()
    result = event_at(conn, row[0]).result if row else None
    return result if isinstance(result, Validation) else None


def _marked(conn: sqlite3.Connection, query: str, *key: str) -> Event | None:
    row = conn.execute(query, key).fetchone()
    return event_at(conn, row[0]) if row and row[0] else None


def attempts(
    conn: sqlite3.Connection, op: str, version: str, attempt: int | None = None
) -> Iterator[KernelSource]:
    """The attempts at a version, newest first; only that one where a number is given."""
    rows = conn.execute(
        "SELECT attempt, seq FROM attempts WHERE op = ? AND version = ? AND attempt = COALESCE(?,"
        " attempt) ORDER BY attempt DESC",
        (op, version, attempt),
    ).fetchall()
    for number, seq in rows:
        source = event_at(conn, seq).source
        if source is not None:
            yield source.model_copy(
                update={"version": version, "attempt": number, "path": module_path(op, version)}
            )


class Attempt(NamedTuple):
    """What became of one saved source: the verdict that stands, the newest compilation."""

    source: KernelSource
    validation: Validation | None
    compilation: Compilation | None


def history(conn: sqlite3.Connection, op: str, version: str) -> Iterator[Attempt]:
    """Every attempt at a version with what became of it, newest first.

    Reads one event for each of these, however long the op's history is.
    """
    rows = conn.execute(
        "SELECT d.seq, a.compiled_seq FROM attempts a LEFT JOIN verdicts d ON d.op = a.op AND"
        " d.version = a.version AND d.sha256 = a.sha256 WHERE a.op = ? AND a.version = ?"
        " ORDER BY a.attempt DESC",
        (op, version),
    ).fetchall()
    for source, (judged, compiled) in zip(attempts(conn, op, version), rows, strict=True):
        verdict = event_at(conn, judged).result if judged else None
        compilation = event_at(conn, compiled).result if compiled else None
        assert isinstance(verdict, Validation | None)
        assert isinstance(compilation, Compilation | None)
        yield Attempt(source, verdict, compilation)


def compilation(conn: sqlite3.Connection, op: str, sha256: str) -> Compilation | None:
    """The newest compilation of a source."""
    event = _marked(
        conn, "SELECT MAX(compiled_seq) FROM attempts WHERE op = ? AND sha256 = ?", op, sha256
    )
    return event.result if event and isinstance(event.result, Compilation) else None


def timed(conn: sqlite3.Connection, op: str, version: str) -> Benchmark | None:
    """The newest benchmark with a time of a version, whatever came of it."""
    event = _marked(conn, "SELECT seq FROM timed WHERE op = ? AND version = ?", op, version)
    return event.result if event and isinstance(event.result, Benchmark) else None


def newest(conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
    """The newest attempt at a version."""
    return next(attempts(conn, op, version), None)


def is_counted(conn: sqlite3.Connection, op: str, version: str) -> bool:
    """Whether a version was written since the last reset."""
    row = conn.execute(
        "SELECT v.written_seq > o.reset_seq FROM versions v JOIN ops o ON o.op = v.op"
        " WHERE v.op = ? AND v.version = ?",
        (op, version),
    ).fetchone()
    return bool(row and row[0])
