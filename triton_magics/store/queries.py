"""Read events, attempts and verdicts from the store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from typing import NamedTuple

from triton_magics.languages.python_source import sha256_of
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
from triton_magics.store.event_json import parse_event
from triton_magics.store.module_header import version_path

LARGEST_INTEGER = 2**63 - 1  # of SQLite


def event_at(conn: sqlite3.Connection, seq: int) -> Event:
    """Return the event with this number.

    Raises:
        sqlite3.DatabaseError: the event is missing or damaged.
    """
    row = conn.execute("SELECT json FROM events WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise sqlite3.DatabaseError(f"event {seq} is missing")
    return parse_stored(seq, row[0])


def parse_stored(seq: int, text: str) -> Event:
    """Return the event of a stored JSON text.

    Raises:
        sqlite3.DatabaseError: it is no event, or its source is not the one that was stored. The
            store has this program's schema, so no other version of it wrote the event.
    """
    try:
        event = parse_event(text)
    except (ValueError, TypeError) as error:
        raise sqlite3.DatabaseError(f"event {seq} can't be read") from error
    source = event.source
    if source is not None and source.sha256 != sha256_of(source.source):
        raise sqlite3.DatabaseError(f"the source in event {seq} was changed")
    return event


def find_damaged_event(conn: sqlite3.Connection) -> str | None:
    """Return a message on the first event that can't be read; None if all can."""
    try:
        for seq, text in conn.execute("SELECT seq, json FROM events ORDER BY seq"):
            parse_stored(seq, text)
        count, last = conn.execute("SELECT COUNT(*), MAX(seq) FROM events").fetchone()
        if count and count != last:
            return f"{last - count} events are missing"
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def open_ops(conn: sqlite3.Connection) -> tuple[str, ...]:
    """Return the ops that have events, the oldest first."""
    rows = conn.execute("SELECT op FROM ops ORDER BY first_seq")
    return tuple(str(row[0]) for row in rows)


def own_ops(conn: sqlite3.Connection) -> dict[str, OpFacts]:
    """Return the user's own ops and their facts."""
    rows = conn.execute("SELECT op FROM ops WHERE facts_seq IS NOT NULL ORDER BY first_seq")
    by_op = {str(op): facts(conn, op) for (op,) in rows.fetchall()}
    return {op: its_facts for op, its_facts in by_op.items() if its_facts is not None}


def n_events(conn: sqlite3.Connection, op: str) -> int:
    """Return the number of an op's events."""
    row = conn.execute("SELECT n_events FROM ops WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def state(conn: sqlite3.Connection, op: str) -> State:
    """Return the state of an op; `start` for one without events."""
    row = conn.execute("SELECT state FROM ops WHERE op = ?", (op,)).fetchone()
    current: State = row[0] if row else "start"
    return current


def known_version(conn: sqlite3.Connection, op: str, number: int) -> str | None:
    """Return the full name of a version by its number: 2 -> `v2_tiling`."""
    row = conn.execute(
        "SELECT version FROM versions WHERE op = ? AND number = ?", (op, number)
    ).fetchone()
    return str(row[0]) if row else None


def version_names(conn: sqlite3.Connection, op: str) -> tuple[str, ...]:
    """Return the full names of the op's versions, by number."""
    rows = conn.execute("SELECT version FROM versions WHERE op = ? ORDER BY number", (op,))
    return tuple(str(row[0]) for row in rows)


def reference(conn: sqlite3.Connection, op: str) -> str | None:
    """Return the last recorded source of an own op's reference."""
    event = _event_of(conn, "SELECT reference_seq FROM ops WHERE op = ?", op)
    return event.reference if event else None


def facts(conn: sqlite3.Connection, op: str) -> OpFacts | None:
    """Return the facts of an own op."""
    event = _event_of(conn, "SELECT facts_seq FROM ops WHERE op = ?", op)
    return event.facts if event else None


def latest_benchmark(conn: sqlite3.Connection, op: str) -> Benchmark | None:
    """Return the newest benchmark that passed."""
    event = _event_of(conn, "SELECT benchmark_seq FROM ops WHERE op = ?", op)
    return event.result if event and isinstance(event.result, Benchmark) else None


def seqs(
    conn: sqlite3.Connection, op: str, *, verbs: Collection[Verb] | None, limit: int | None
) -> tuple[int, ...]:
    """Return the numbers of an op's newest events, the oldest first; all without a limit."""
    n_rows = -1 if limit is None else limit
    if verbs is None:
        rows = conn.execute(
            "SELECT seq FROM events WHERE op = ? ORDER BY seq DESC LIMIT ?", (op, n_rows)
        )
    else:
        rows = conn.execute(
            "SELECT seq FROM events INDEXED BY events_of_verb WHERE op = ? AND verb IN"
            " (SELECT value FROM json_each(?)) ORDER BY seq DESC LIMIT ?",
            (op, json.dumps(list(verbs)), n_rows),
        )
    return tuple(int(row[0]) for row in rows.fetchall())[::-1]


def verdict(conn: sqlite3.Connection, source: KernelSource) -> Validation | None:
    """Return the validation in force on a source."""
    return _validation(
        conn,
        "SELECT seq FROM verdicts WHERE op = ? AND version = ? AND sha256 = ?",
        (source.op, source.version, source.sha256),
    )


def passed_validation(
    conn: sqlite3.Connection, key: tuple[str, str, str, DeviceKind]
) -> Validation | None:
    """Return the newest validation of (op, sha256, dtype, device kind), if it passed."""
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


def _event_of(conn: sqlite3.Connection, query: str, *key: str) -> Event | None:
    row = conn.execute(query, key).fetchone()
    return event_at(conn, row[0]) if row and row[0] else None


def attempts(
    conn: sqlite3.Connection, op: str, version: str, attempt: int | None = None
) -> Iterator[KernelSource]:
    """Yield the attempts at a version, newest first; only one of them with a number."""
    if attempt is not None and attempt > LARGEST_INTEGER:
        return
    rows = conn.execute(
        "SELECT attempt, seq FROM attempts WHERE op = ? AND version = ? AND attempt = COALESCE(?,"
        " attempt) ORDER BY attempt DESC",
        (op, version, attempt),
    ).fetchall()
    for number, seq in rows:
        source = event_at(conn, seq).source
        if source is not None:
            path = version_path(op, version, source.suffix)
            yield source.evolve(version=version, attempt=number, path=path)


class Attempt(NamedTuple):
    """A saved source with the verdict in force and the newest compilation."""

    source: KernelSource
    validation: Validation | None
    compilation: Compilation | None


def history(conn: sqlite3.Connection, op: str, version: str) -> Iterator[Attempt]:
    """Yield every attempt at a version with its results, newest first.

    Reads one event for each of these, independent of the length of the op's history.
    """
    rows = conn.execute(
        "SELECT d.seq, a.compiled_seq FROM attempts a LEFT JOIN verdicts d ON d.op = a.op AND"
        " d.version = a.version AND d.sha256 = a.sha256 WHERE a.op = ? AND a.version = ?"
        " ORDER BY a.attempt DESC",
        (op, version),
    ).fetchall()
    for source, (verdict_seq, compiled_seq) in zip(attempts(conn, op, version), rows, strict=True):
        verdict = event_at(conn, verdict_seq).result if verdict_seq else None
        compilation = event_at(conn, compiled_seq).result if compiled_seq else None
        assert isinstance(verdict, Validation | None)
        assert isinstance(compilation, Compilation | None)
        yield Attempt(source, verdict, compilation)


def compilation(conn: sqlite3.Connection, op: str, sha256: str) -> Compilation | None:
    """Return the newest compilation of a source."""
    event = _event_of(
        conn, "SELECT MAX(compiled_seq) FROM attempts WHERE op = ? AND sha256 = ?", op, sha256
    )
    return event.result if event and isinstance(event.result, Compilation) else None


def latest_timing(conn: sqlite3.Connection, op: str, version: str) -> Benchmark | None:
    """Return the newest benchmark with a time of a version, a complete one if there is one."""
    event = _event_of(conn, "SELECT seq FROM timed WHERE op = ? AND version = ?", op, version)
    return event.result if event and isinstance(event.result, Benchmark) else None


def newest(conn: sqlite3.Connection, op: str, version: str) -> KernelSource | None:
    """Return the newest attempt at a version."""
    return next(attempts(conn, op, version), None)


def is_counted(conn: sqlite3.Connection, op: str, version: str) -> bool:
    """Return True if a version was written since the last reset."""
    row = conn.execute(
        "SELECT v.written_seq > o.reset_seq FROM versions v JOIN ops o ON o.op = v.op"
        " WHERE v.op = ? AND v.version = ?",
        (op, version),
    ).fetchone()
    return bool(row and row[0])
