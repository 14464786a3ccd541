"""Read and write logs/<op>_log.jsonl: the op's events, one a line.

The store is authoritative and is written first. Events that only the file has (from another clone,
or from before the store was lost) are imported. The logs are enough to rebuild the store.

Events that only the store has are appended when the next event is recorded, not when the workspace
is opened: `git checkout` of another branch takes lines away, and must leave a clean tree.
"""

from __future__ import annotations

import codecs
import json
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from triton_magics.errors import BadName
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import Event, check_op_name, parse_version
from triton_magics.store import projections
from triton_magics.store.event_json import parse_event
from triton_magics.store.safe_files import Folder

_SUFFIX = "_log.jsonl"
# Two branches append to the same file: git keeps the lines of both.
_ATTRIBUTES = ("logs/.gitattributes", f"*{_SUFFIX} merge=union\n".encode())
MAX_DIGITS = 18  # of a number in an event: what SQLite holds


class SyncOutcome(NamedTuple):
    """Number of events imported from the file, and sentences for the user."""

    merged: int
    notes: tuple[str, ...] = ()


class _LogLines(NamedTuple):
    """Lines of a log file.

    Attributes:
        events: uuid and text of each line that is an event.
        n_junk: number of other lines.
        partial: last line, if it is incomplete.
        missing_end: end of line that the file lacks.
        size: of the file in bytes.
    """

    events: list[tuple[str, str]]
    n_junk: int
    partial: bytes
    missing_end: bytes
    size: int


def log_path(op: str) -> str:
    """Return the path of an op's event log, relative to the workspace."""
    return f"logs/{op}{_SUFFIX}"


def logged_ops(files: Folder) -> tuple[str, ...]:
    """Return the ops that have a log file."""
    names = [n.removesuffix(_SUFFIX) for n in files.names("logs") if n.endswith(_SUFFIX)]
    return tuple(name for name in names if is_op(name))


def unreadable_lines(files: Folder, op: str) -> int:
    """Count the lines of an op's log that are not events of this op."""
    log = _parse_log(files.read(log_path(op)) or b"")
    foreign = sum(_checked_event(line, op) is None for _, line in log.events)
    return log.n_junk + foreign + bool(log.partial)


def needs_sync(conn: sqlite3.Connection, files: Folder, op: str, *, export: bool) -> bool:
    """Return True if the file has changed or, with `export`, lacks events of the store."""
    unlogged = conn.execute("SELECT 1 FROM unlogged WHERE op = ? LIMIT 1", (op,)).fetchone()
    lacks = export and unlogged is not None
    return lacks or files.size(log_path(op)) != _seen_size(conn, op)


def sync_log(
    conn: sqlite3.Connection,
    files: Folder,
    op: str,
    *,
    export: bool,
    whole: bool = False,
    restore: bool = True,
) -> SyncOutcome:
    """Bring the store and the file to the same events, within the caller's transaction.

    Args:
        conn: the store.
        files: the workspace.
        op: canonical name.
        export: append missing events to the file; otherwise only import.
        whole: compare all events, even if the size of the file has not changed.
        restore: append also events that were in the file once. Otherwise only those that never
            were, or all if the file ends within a line.

    Raises:
        OSError: the file could not be read or written; it is unchanged.
    """
    path = log_path(op)
    size = files.size(path)
    result, missing_end = SyncOutcome(0), b""
    is_whole = True
    if whole or size != _seen_size(conn, op):
        log = _parse_log(files.read(path) or b"")
        never_logged = _unlogged_seqs(conn, op)
        merged, refused = _merge(conn, op, log)
        size, missing_end = log.size, log.missing_end
        is_own = log.partial and _is_unlogged(conn, op, log.partial)
        if is_own and export:
            size, missing_end = size - len(log.partial), b""
            files.truncate(path, size)
        if not restore and not is_own:
            is_whole = _unlogged_seqs(conn, op) <= never_logged
            _keep_unlogged(conn, op, never_logged)
        refused += bool(log.partial and not is_own)
        result = SyncOutcome(merged, _refusal_note(op, refused))
    if export:
        size += _append_unlogged(conn, files, op, missing_end)
    if is_whole:  # otherwise the next event compares the file with the store once more
        conn.execute("INSERT OR REPLACE INTO logs VALUES (?, ?)", (op, size))
    return result


def _append_unlogged(conn: sqlite3.Connection, files: Folder, op: str, missing_end: bytes) -> int:
    """Append the events that the file lacks, and return their size in bytes."""
    if data := missing_end + b"".join(_unlogged_lines(conn, op)):
        if not files.names("logs"):
            files.replace(*_ATTRIBUTES)
        files.append(log_path(op), data)
        conn.execute("DELETE FROM unlogged WHERE op = ?", (op,))
    return len(data)


def _is_unlogged(conn: sqlite3.Connection, op: str, partial: bytes) -> bool:
    """Return True if a partial line is the start of one that will be written again."""
    return any(line.startswith(partial) for line in _unlogged_lines(conn, op))


def _unlogged_seqs(conn: sqlite3.Connection, op: str) -> set[int]:
    return {int(r[0]) for r in conn.execute("SELECT seq FROM unlogged WHERE op = ?", (op,))}


def _keep_unlogged(conn: sqlite3.Connection, op: str, seqs: set[int]) -> None:
    rows = [(op, seq) for seq in _unlogged_seqs(conn, op) - seqs]
    conn.executemany("DELETE FROM unlogged WHERE op = ? AND seq = ?", rows)


def _seen_size(conn: sqlite3.Connection, op: str) -> int:
    row = conn.execute("SELECT size FROM logs WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def _unlogged_lines(conn: sqlite3.Connection, op: str) -> Iterator[bytes]:
    rows = conn.execute(
        "SELECT json FROM unlogged JOIN events USING (op, seq) WHERE op = ? ORDER BY seq",
        (op,),
    )
    return (f"{text}\n".encode() for (text,) in rows)


# -------------------------------------------------------------------------------------- import


def _parse_log(data: bytes) -> _LogLines:
    *lines, partial = data.removeprefix(codecs.BOM_UTF8).split(b"\n")
    missing_end = b"\n" if partial else b""
    if _uuid(partial):  # only its end of line is missing
        lines, partial = [*lines, partial], b""
    events, n_junk = [], 0
    for line in lines:
        if uuid := _uuid(line):
            events.append((uuid, line.decode()))
        else:
            n_junk += bool(line.strip())
    return _LogLines(events, n_junk, partial, missing_end, len(data))


def _uuid(line: bytes) -> str | None:
    return _field(line, "uuid")


def _field(line: bytes, name: str) -> str | None:
    """Return a text of a JSON object; None if there is none, or a number that no store holds."""
    try:
        record = json.loads(line.decode(), parse_int=_parse_int)
    except (ValueError, RecursionError):
        return None
    value = record.get(name) if isinstance(record, dict) else None
    return value if isinstance(value, str) else None


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _merge(conn: sqlite3.Connection, op: str, log: _LogLines) -> tuple[int, int]:
    """Import the events that the store lacks, and mark those that the file lacks.

    Returns:
        number of imported lines, and of refused ones.
    """
    seqs = dict(conn.execute("SELECT uuid, seq FROM events WHERE op = ?", (op,)).fetchall())
    merged, refused = 0, log.n_junk
    for uuid, line in log.events:
        if uuid in seqs:
            continue
        event = _checked_event(line, op)
        if event is None or _has_uuid(conn, uuid):
            refused += 1
            continue
        seqs[uuid] = _insert(conn, event)
        merged += 1
    _mark_unlogged(conn, op, {uuid for uuid, _ in log.events}, seqs)
    return merged, refused


def _insert(conn: sqlite3.Connection, event: Event) -> int:
    seq = projections.next_seq(conn)
    projections.apply(conn, seq, event)
    projections.insert(conn, seq, event)
    return seq


def import_events(conn: sqlite3.Connection, lines: Iterable[str]) -> tuple[str, ...]:
    """Import the events that the store lacks, to be logged; return their ops.

    Lines that are no consistent event are ignored.
    """
    ops: dict[str, None] = {}
    for line in lines:
        op = _field(line.encode(), "op")
        event = _checked_event(line, op) if op and is_op(op) else None
        if event is not None and not _has_uuid(conn, event.uuid):
            seq = _insert(conn, event)
            conn.execute("INSERT INTO unlogged VALUES (?, ?)", (event.op, seq))
            ops[event.op] = None
    return tuple(ops)


def count_unmatched(conn: sqlite3.Connection, files: Folder, op: str) -> int:
    """Count the events of an op that only the store or only its log file has."""
    stored = {str(row[0]) for row in conn.execute("SELECT uuid FROM events WHERE op = ?", (op,))}
    log = _parse_log(files.read(log_path(op)) or b"")
    logged = {uuid for uuid, line in log.events if _checked_event(line, op)}
    return len(stored ^ logged)


def _has_uuid(conn: sqlite3.Connection, uuid: str) -> bool:
    return conn.execute("SELECT 1 FROM events WHERE uuid = ?", (uuid,)).fetchone() is not None


def _mark_unlogged(
    conn: sqlite3.Connection, op: str, in_file: set[str], seqs: dict[str, int]
) -> None:
    conn.execute("DELETE FROM unlogged WHERE op = ?", (op,))
    rows = [(op, seq) for uuid, seq in seqs.items() if uuid not in in_file]
    conn.executemany("INSERT INTO unlogged VALUES (?, ?)", rows)


def _refusal_note(op: str, count: int) -> tuple[str, ...]:
    if not count:
        return ()
    lines = "a line" if count == 1 else f"{count} lines"
    return (f"{log_path(op)}: {lines} can't be read as events of {op}; the file was not changed.",)


def _checked_event(line: str, op: str) -> Event | None:
    """Return the event of a line, or None if it is inconsistent: the file is untrusted."""
    try:
        event = parse_event(line)
    except ValueError:
        return None
    source = event.source
    if event.op != op or (event.verb == "written" and source is None):
        return None
    if source and (source.op != op or source.sha256 != sha256_of(source.source)):
        return None
    return event if all(_is_version(name) for name in _versions(event)) else None


def _versions(event: Event) -> Iterator[str]:
    """Yield every version that an event names: they become parts of paths."""
    for value in (event, event.source, event.result):
        version = getattr(value, "version", None)
        if version is not None:
            yield version
    yield from getattr(event.result, "versions", ())


def _is_version(name: str) -> bool:
    try:
        number: int = parse_version(name)[0]
    except BadName:
        return False
    return len(str(number)) <= MAX_DIGITS


def is_op(name: str) -> bool:
    """Return True if a file or folder is named like an op."""
    try:
        check_op_name(name)
    except BadName:
        return False
    return True
