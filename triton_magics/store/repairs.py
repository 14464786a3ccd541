"""Check a workspace for damage, and repair it without losing data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from triton_magics.errors import TritonMagicsError
from triton_magics.model import Finding
from triton_magics.next_step import NextStep
from triton_magics.store import (
    event_log,
    module_header,
    projections,
    queries,
    sqlite,
    sqlite_errors,
)
from triton_magics.store.kernel_files import KernelFiles, is_installed
from triton_magics.store.safe_files import STORE, Folder

REPAIR = NextStep("doctor", {"repair": True})


class WorkspaceParts(NamedTuple):
    """Files, kernels and settings of a workspace."""

    files: Folder
    kernels: KernelFiles
    read_only: bool
    history: bool


def examine(conn: sqlite3.Connection, parts: WorkspaceParts) -> Iterator[Finding]:
    """Yield the findings, those of the store first; change nothing."""
    yield _check_access(parts)
    store = _check_store(conn)
    yield store
    if store.state == "bad":
        return  # a damaged store can't be compared with the files
    yield from _check_damaged_copies(parts.files)
    yield _check_tables(conn)
    for op in _ops(conn, parts.files):
        yield from _check_logs(conn, parts, op)
        yield from _check_kernels(conn, parts, op)


def _ops(conn: sqlite3.Connection, files: Folder) -> tuple[str, ...]:
    stored = {str(row[0]) for row in conn.execute("SELECT op FROM ops")}
    return tuple(sorted(stored | set(event_log.logged_ops(files))))


def _check_access(parts: WorkspaceParts) -> Finding:
    if parts.read_only:
        return Finding(
            subject="workspace", state="warn",
            detail="the folder can't be written: nothing is saved",
            remedy="choose a folder that you can write as the workspace, in a new session",
        )  # fmt: skip
    return Finding(subject="workspace", state="good", detail="the folder can be written")


def _check_store(conn: sqlite3.Connection) -> Finding:
    try:
        verdict = str(conn.execute("PRAGMA integrity_check(1)").fetchone()[0])
        (events,) = conn.execute("SELECT COUNT(json) FROM events").fetchone()
    except sqlite3.DatabaseError as error:
        if not sqlite_errors.is_damage(error):
            raise
        verdict = str(error)
    if verdict == "ok":
        verdict = queries.find_damaged_event(conn) or "ok"
    if verdict != "ok":
        return Finding(subject="store", state="bad", detail=f"damaged: {verdict}", next_step=REPAIR)
    return Finding(subject="store", state="good", detail=f"sound, {events:,} events")


def _check_damaged_copies(files: Folder) -> Iterator[Finding]:
    start = f"{sqlite_errors.NAME}.corrupt-"
    copies = [n for n in files.names(STORE) if n.startswith(start) and n[len(start) :].isdigit()]
    if copies:
        yield Finding(
            subject="store", state="warn",
            detail=f"a damaged store was moved aside earlier: {', '.join(copies)} in {STORE}",
            remedy=f"delete {STORE}/{copies[0]} once you are sure that nothing is missing",
        )  # fmt: skip


def _check_tables(conn: sqlite3.Connection) -> Finding:
    """Rebuild the tables on a copy and compare them with the stored ones."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    try:
        conn.backup(copy)
        before = projections.dump_tables(copy)
        with sqlite.transaction(copy):
            projections.rebuild(copy)
        is_same = projections.dump_tables(copy) == before
    except TritonMagicsError as error:
        return Finding(subject="state", state="bad", detail=str(error))
    finally:
        copy.close()
    if is_same:
        return Finding(subject="state", state="good", detail="matches the events")
    return Finding(subject="state", state="bad", detail="differs from the events", next_step=REPAIR)


def _check_logs(conn: sqlite3.Connection, parts: WorkspaceParts, op: str) -> Iterator[Finding]:
    path = event_log.log_path(op)
    try:
        differs = event_log.needs_sync(conn, parts.files, op, export=parts.history)
        unreadable = event_log.unreadable_lines(parts.files, op)
        differs = differs or (
            parts.history and bool(event_log.count_unmatched(conn, parts.files, op))
        )
    except (TritonMagicsError, OSError) as error:
        yield Finding(subject=path, state="bad", detail=str(error), remedy="move it away")
        return
    if differs:
        yield Finding(subject=path, state="warn", detail="differs from the store", next_step=REPAIR)
    if unreadable:
        lines = (
            "1 line is not an event" if unreadable == 1 else f"{unreadable} lines are not events"
        )
        yield Finding(
            subject=path, state="warn", detail=f"{lines} of {op}; the file was not changed",
            remedy="restore the file from git, or ignore this",
        )  # fmt: skip


def _check_kernels(conn: sqlite3.Connection, parts: WorkspaceParts, op: str) -> Iterator[Finding]:
    for version in queries.version_names(conn, op):
        newest = queries.newest(conn, op, version)
        if newest is None:
            continue
        path = newest.path
        if not is_installed(newest):
            yield Finding(
                subject=path, state="warn",
                detail=f"kernel language {newest.language!r} can't be loaded here",
                remedy=f"install the package that provides {newest.language!r}",
            )  # fmt: skip
            continue
        try:
            if parts.kernels.is_current(conn, op, version):
                continue
            is_missing = parts.files.read(path) is None
        except (TritonMagicsError, OSError) as error:
            yield Finding(subject=path, state="bad", detail=str(error), remedy="move it away")
            continue
        problem = (
            "missing; the store has the code"
            if is_missing
            else "edited; the edit is not recorded yet"
        )
        yield Finding(subject=path, state="warn", detail=problem, next_step=REPAIR)
    yield from _check_reference(conn, parts, op)


def _check_reference(conn: sqlite3.Connection, parts: WorkspaceParts, op: str) -> Iterator[Finding]:
    if parts.kernels.reference_differs(conn, op):
        yield Finding(
            subject=module_header.reference_path(op),
            state="warn",
            detail="missing, or edited since it was recorded",
            next_step=REPAIR,
        )


# ------------------------------------------------------------------------------------- repair


def repair(conn: sqlite3.Connection, parts: WorkspaceParts) -> tuple[str, ...]:
    """Repair within the caller's transaction, and return the problems that remain.

    Events are never changed: the tables are rebuilt from them, an edit of a file becomes an
    attempt, a missing file is restored.
    """
    projections.rebuild(conn)
    failed = []
    for op in _ops(conn, parts.files):
        try:
            for version in queries.version_names(conn, op):
                parts.kernels.sync(conn, op, version)
            if parts.kernels.reference_differs(conn, op):
                parts.kernels.sync_reference(conn, op)
            event_log.sync_log(conn, parts.files, op, export=parts.history, whole=True)
        except (TritonMagicsError, OSError) as error:
            failed.append(f"{op}: {error}")
    return tuple(failed)
