"""Is the workspace whole, and what of it can be mended without losing anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from triton_magics.errors import TritonMagicsError
from triton_magics.model import Finding
from triton_magics.workspace import database, journal, modules, reading, tables
from triton_magics.workspace.files import STORE, Folder
from triton_magics.workspace.kernels import Kernels

MEND = "%triton_doctor --repair"


class Parts(NamedTuple):
    """What a workspace consists of."""

    files: Folder
    kernels: Kernels
    read_only: bool
    history: bool


def examine(conn: sqlite3.Connection, parts: Parts) -> Iterator[Finding]:
    """What was found, the store first; nothing is changed."""
    yield _writable(parts)
    store = _store(conn)
    yield store
    if store.state == "bad":
        return  # what it says of the rest can't be trusted
    yield from _aside(parts.files)
    yield _tables(conn)
    for op in _ops(conn, parts.files):
        yield from _logs(conn, parts, op)
        yield from _kernels(conn, parts, op)


def _ops(conn: sqlite3.Connection, files: Folder) -> tuple[str, ...]:
    known = {str(row[0]) for row in conn.execute("SELECT op FROM ops")}
    return tuple(sorted(known | set(journal.logged_ops(files))))


def _writable(parts: Parts) -> Finding:
    if parts.read_only:
        return Finding(
            what="workspace", state="warn", says="its folder can't be written: nothing is recorded",
            mend="%config TritonMagics.workspace = 'a folder of yours', in a new session",
        )  # fmt: skip
    return Finding(what="workspace", state="good", says="its folder can be written")


def _store(conn: sqlite3.Connection) -> Finding:
    try:
        verdict = str(conn.execute("PRAGMA integrity_check(1)").fetchone()[0])
        (events,) = conn.execute("SELECT COUNT(json) FROM events").fetchone()
    except sqlite3.DatabaseError as error:
        if not database.is_damage(error):
            raise
        verdict = str(error)
    if verdict != "ok":
        return Finding(what="store", state="bad", says=f"damaged: {verdict}", mend=MEND)
    return Finding(what="store", state="good", says=f"sound, {events:,} events")


def _aside(files: Folder) -> Iterator[Finding]:
    start = f"{database.NAME}.corrupt-"
    found = [n for n in files.names(STORE) if n.startswith(start) and n[len(start) :].isdigit()]
    if found:
        yield Finding(
            what="store", state="warn",
            says=f"a damaged store was moved aside earlier: {', '.join(found)} in {STORE}",
            mend=f"delete {STORE}/{found[0]}, once nothing is missed",
        )  # fmt: skip


def _tables(conn: sqlite3.Connection) -> Finding:
    """Whether the tables of the current state are what the events say, tried out on a copy."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.backup(copy)
        before = tables.contents(copy)
        with database.transaction(copy):
            tables.rebuild(copy)
        same = tables.contents(copy) == before
    except TritonMagicsError as error:
        return Finding(what="state", state="bad", says=str(error))
    finally:
        copy.close()
    if same:
        return Finding(what="state", state="good", says="as the events say")
    return Finding(what="state", state="bad", says="not what the events say", mend=MEND)


def _logs(conn: sqlite3.Connection, parts: Parts, op: str) -> Iterator[Finding]:
    path = journal.log_path(op)
    try:
        lags = journal.differs(conn, parts.files, op, export=parts.history)
        unreadable = journal.unreadable_lines(parts.files, op)
    except (TritonMagicsError, OSError) as error:
        yield Finding(what=path, state="bad", says=str(error), mend="move it away")
        return
    if lags:
        yield Finding(what=path, state="warn", says="not what the store has", mend=MEND)
    if unreadable:
        lines = "a line is" if unreadable == 1 else f"{unreadable} lines are"
        yield Finding(
            what=path, state="warn", says=f"{lines} no event of {op}; they were left as they are",
            mend="take them from the file's history in git, or leave them",
        )  # fmt: skip


def _kernels(conn: sqlite3.Connection, parts: Parts, op: str) -> Iterator[Finding]:
    for version in reading.version_names(conn, op):
        path = modules.module_path(op, version)
        try:
            if parts.kernels.is_current(conn, op, version):
                continue
            gone = parts.files.read(path) is None
        except (TritonMagicsError, OSError) as error:
            yield Finding(what=path, state="bad", says=str(error), mend="move it away")
            continue
        said = "lost; the store has it" if gone else "edited since; the edit is no attempt yet"
        yield Finding(what=path, state="warn", says=said, mend=MEND)
    yield from _reference(conn, parts, op)


def _reference(conn: sqlite3.Connection, parts: Parts, op: str) -> Iterator[Finding]:
    if parts.kernels.reference_differs(conn, op):
        yield Finding(
            what=modules.reference_path(op), state="warn", says="lost, or edited since", mend=MEND
        )


# ------------------------------------------------------------------------------------- repair


def repair(conn: sqlite3.Connection, parts: Parts) -> tuple[str, ...]:
    """Mend what can be mended, within the caller's transaction; what could not be, and why.

    Events stay as they are: the tables are made anew from them, an edit of a file becomes an
    attempt, a lost file is put back.
    """
    tables.rebuild(conn)
    failed = []
    for op in _ops(conn, parts.files):
        try:
            for version in reading.version_names(conn, op):
                parts.kernels.sync(conn, op, version)
            if parts.kernels.reference_differs(conn, op):
                parts.kernels.sync_reference(conn, op)
            journal.settle(conn, parts.files, op, export=parts.history)
        except (TritonMagicsError, OSError) as error:
            failed.append(f"{op}: {error}")
    return tuple(failed)
