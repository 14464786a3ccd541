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
    """The lines of a file that are events of its op, those that are not, and a torn last line."""

    events: list[tuple[str, str]]  # uuid, line
    junk: list[int]
    torn: bytes
    size: int


def log_path(op: str) -> str:
    """Where an op's event log is, relative to the workspace."""
    return f"logs/{op}{_SUFFIX}"


def logged_ops(files: Folder) -> tuple[str, ...]:
    """The ops that have a log file."""
    names = [n.removesuffix(_SUFFIX) for n in files.names("logs") if n.endswith(_SUFFIX)]
    return tuple(name for name in names if is_op(name))


def differs(conn: sqlite3.Connection, files: Folder, op: str) -> bool:
    """Whether the file is not what the store last saw, or lacks events."""
    waiting = conn.execute("SELECT 1 FROM unlogged WHERE op = ? LIMIT 1", (op,)).fetchone()
    return waiting is not None or files.size(log_path(op)) != _seen_size(conn, op)


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
    result = Settled(0)
    prefix = b""
    if size != _seen_size(conn, op):
        contents = _contents(files.read(path) or b"")
        result = _merge(conn, op, contents)
        size = contents.size
        prefix = _mended_end(conn, files, op, contents) if export else b""
    if export and (lines := b"".join(_waiting_lines(conn, op))):
        size = files.append(path, prefix + lines)
        conn.execute("DELETE FROM unlogged WHERE op = ?", (op,))
    conn.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (op, size))
    return result


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
    if _uuid(torn):  # only its newline was torn off
        lines, torn = [*lines, torn], b"\n"
    events, junk = [], []
    for number, line in enumerate(lines, start=1):
        if uuid := _uuid(line):
            events.append((uuid, line.decode()))
        elif line.strip():
            junk.append(number)
    return _Contents(events, junk, torn, len(data))


def _uuid(line: bytes) -> str | None:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    uuid = record.get("uuid") if isinstance(record, dict) else None
    return uuid if isinstance(uuid, str) else None


def _merge(conn: sqlite3.Connection, op: str, contents: _Contents) -> Settled:
    """Take in the events that the store lacks, and note those that the file lacks."""
    known = dict(conn.execute("SELECT uuid, seq FROM events WHERE op = ?", (op,)).fetchall())
    refused, merged = list(contents.junk), 0
    for number, (uuid, line) in enumerate(contents.events, start=1):
        if uuid in known:
            continue
        event = _event(line, op)
        if event is None or _uuid_is_taken(conn, uuid):
            refused.append(number)
            continue
        known[uuid] = tables.next_seq(conn)
        tables.apply(conn, known[uuid], event)
        tables.insert(conn, known[uuid], event)
        merged += 1
    _note_waiting(conn, op, {uuid for uuid, _ in contents.events}, known)
    return Settled(merged, _refusal(op, len(refused)))


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


def _mended_end(conn: sqlite3.Connection, files: Folder, op: str, contents: _Contents) -> bytes:
    """What to write before the next line, after a last line that was torn off.

    The start of a line that the store is about to write again is cut; anything else is left.
    """
    torn = contents.torn
    if torn in (b"", b"\n"):
        return torn
    if any(line.startswith(torn) for line in _waiting_lines(conn, op)):
        files.truncate(log_path(op), contents.size - len(torn))
        return b""
    return b"\n"
