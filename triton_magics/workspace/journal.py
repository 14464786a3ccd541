"""logs/<op>_log.jsonl: the op's events, one a line, enough to rebuild the store from.

The store is the truth and the file follows it; but what the file has and the store lacks (another
clone's work, a lost store) is taken in.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from triton_magics.errors import BadName
from triton_magics.model import Event, check_op_name, parse_version
from triton_magics.workspace import tables
from triton_magics.workspace.files import Folder
from triton_magics.workspace.source import sha256_of

_SUFFIX = "_log.jsonl"


class Settled(NamedTuple):
    """What came of it: events taken in from the file, sentences for the user."""

    merged: int
    notes: tuple[str, ...] = ()


class _Contents(NamedTuple):
    """What is in a file: lines that are events, others, a torn last one, its end of line."""

    events: list[tuple[str, str]]  # uuid, line
    n_junk: int
    torn: bytes
    missing_end: bytes
    size: int


def log_path(op: str) -> str:
    """Where an op's event log is, relative to the workspace."""
    return f"logs/{op}{_SUFFIX}"


def logged_ops(files: Folder) -> tuple[str, ...]:
    """The ops that have a log file."""
    names = [n.removesuffix(_SUFFIX) for n in files.names("logs") if n.endswith(_SUFFIX)]
    return tuple(name for name in names if is_op(name))


def unreadable_lines(files: Folder, op: str) -> int:
    """How many lines of an op's log are no events of it."""
    contents = _contents(files.read(log_path(op)) or b"")
    strange = sum(_event(line, op) is None for _, line in contents.events)
    return contents.n_junk + strange + bool(contents.torn)


def differs(conn: sqlite3.Connection, files: Folder, op: str, *, export: bool) -> bool:
    """Whether the file is not what the store last saw or, if it is to be written, lacks events."""
    waiting = conn.execute("SELECT 1 FROM unlogged WHERE op = ? LIMIT 1", (op,)).fetchone()
    lacks = export and waiting is not None
    return lacks or files.size(log_path(op)) != _seen_size(conn, op)


def settle(conn: sqlite3.Connection, files: Folder, op: str, *, export: bool) -> Settled:
    """Bring store and file to the same events; within the caller's transaction.

    Args:
        conn: the store.
        files: the workspace.
        op: whose log.
        export: append to the file what it lacks; else only take in.

    Raises:
        OSError: the file could not be read or written; it is as it was.
    """
    path = log_path(op)
    size = files.size(path)
    result, missing_end = Settled(0), b""
    if size != _seen_size(conn, op):
        contents = _contents(files.read(path) or b"")
        merged, refused = _merge(conn, op, contents)
        size, missing_end = contents.size, contents.missing_end
        is_ours = contents.torn and _is_waiting(conn, op, contents.torn)
        if is_ours and export:
            size, missing_end = size - len(contents.torn), b""
            files.truncate(path, size)
        refused += bool(contents.torn and not is_ours)
        result = Settled(merged, _refusal(op, refused))
    if export:
        size += _append_waiting(conn, files, op, missing_end)
    conn.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (op, size))
    return result


def _append_waiting(conn: sqlite3.Connection, files: Folder, op: str, missing_end: bytes) -> int:
    """Append the events that the file lacks; how many bytes they are."""
    if data := missing_end + b"".join(_waiting_lines(conn, op)):
        files.append(log_path(op), data)
        conn.execute("DELETE FROM unlogged WHERE op = ?", (op,))
    return len(data)


def _is_waiting(conn: sqlite3.Connection, op: str, torn: bytes) -> bool:
    """Whether a torn line is the start of one that is about to be written again."""
    return any(line.startswith(torn) for line in _waiting_lines(conn, op))


def _seen_size(conn: sqlite3.Connection, op: str) -> int:
    row = conn.execute("SELECT size FROM logs WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def _waiting_lines(conn: sqlite3.Connection, op: str) -> Iterator[bytes]:
    rows = conn.execute(
        "SELECT json FROM unlogged JOIN events USING (op, seq) WHERE op = ? ORDER BY seq",
        (op,),
    )
    return (f"{text}\n".encode() for (text,) in rows)


# ------------------------------------------------------------------------------------ taking in


def _contents(data: bytes) -> _Contents:
    *lines, torn = data.split(b"\n")
    missing_end = b"\n" if torn else b""
    if _uuid(torn):  # only its end of line is missing
        lines, torn = [*lines, torn], b""
    events, n_junk = [], 0
    for line in lines:
        if uuid := _uuid(line):
            events.append((uuid, line.decode()))
        else:
            n_junk += bool(line.strip())
    return _Contents(events, n_junk, torn, missing_end, len(data))


def _uuid(line: bytes) -> str | None:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    uuid = record.get("uuid") if isinstance(record, dict) else None
    return uuid if isinstance(uuid, str) else None


def _merge(conn: sqlite3.Connection, op: str, contents: _Contents) -> tuple[int, int]:
    """Take in the events that the store lacks, and note those that the file lacks.

    Returns:
        how many lines were taken in, and how many could not be.
    """
    known = dict(conn.execute("SELECT uuid, seq FROM events WHERE op = ?", (op,)).fetchall())
    merged, refused = 0, contents.n_junk
    for uuid, line in contents.events:
        if uuid in known:
            continue
        event = _event(line, op)
        if event is None or _uuid_is_taken(conn, uuid):
            refused += 1
            continue
        known[uuid] = tables.next_seq(conn)
        tables.apply(conn, known[uuid], event)
        tables.insert(conn, known[uuid], event)
        merged += 1
    _note_waiting(conn, op, {uuid for uuid, _ in contents.events}, known)
    return merged, refused


def _uuid_is_taken(conn: sqlite3.Connection, uuid: str) -> bool:
    return conn.execute("SELECT 1 FROM events WHERE uuid = ?", (uuid,)).fetchone() is not None


def _note_waiting(
    conn: sqlite3.Connection, op: str, in_file: set[str], known: dict[str, int]
) -> None:
    conn.execute("DELETE FROM unlogged WHERE op = ?", (op,))
    rows = [(op, seq) for uuid, seq in known.items() if uuid not in in_file]
    conn.executemany("INSERT INTO unlogged VALUES (?, ?)", rows)


def _refusal(op: str, count: int) -> tuple[str, ...]:
    if not count:
        return ()
    lines = "a line" if count == 1 else f"{count} lines"
    return (f"{log_path(op)}: {lines} that this program can't read as {op}'s events were left.",)


def _event(line: str, op: str) -> Event | None:
    """The event of a line, if it is sound: the file may come from anywhere."""
    try:
        event = Event.model_validate_json(line)
    except ValueError:
        return None
    source = event.source
    if event.op != op or (event.verb == "written" and source is None):
        return None
    if source and (source.op != op or source.sha256 != sha256_of(source.source)):
        return None
    return event if all(_is_version(name) for name in _versions(event)) else None


def _versions(event: Event) -> Iterator[str]:
    """Every version that an event names: they become paths."""
    for holder in (event, event.source, event.result):
        version = getattr(holder, "version", None)
        if version is not None:
            yield version
    yield from getattr(event.result, "versions", ())


def _is_version(name: str) -> bool:
    try:
        parse_version(name)
    except BadName:
        return False
    return True


def is_op(name: str) -> bool:
    """Whether a file or folder is named like an op."""
    try:
        check_op_name(name)
    except BadName:
        return False
    return True
