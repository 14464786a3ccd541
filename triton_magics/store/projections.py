"""Derive the tables of the current state from the events.

Only `apply` changes the tables; `rebuild` empties them and applies every event again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator

from pydantic import TypeAdapter

from triton_magics.model import (
    Badge,
    Benchmark,
    Compilation,
    Coverage,
    DeviceKind,
    Event,
    KernelSource,
    NotTimedCode,
    State,
    Status,
    Validation,
    Verb,
    parse_version,
)
from triton_magics.store import queries

# A verdict and a time belong to a source (its sha256), so a restored attempt has its own again.
# `passes` has the newest verdict per dtype and device kind, `verdicts` the one in force,
# `timed` the newest benchmark with a time of a version; an interrupted one only without another.
_TABLES = {
    "ops": "op TEXT PRIMARY KEY, state TEXT NOT NULL, first_seq INTEGER NOT NULL,"
    " n_events INTEGER NOT NULL, reset_seq INTEGER NOT NULL DEFAULT 0, reference_seq INTEGER,"
    " facts_seq INTEGER, benchmark_seq INTEGER",
    "versions": "op TEXT, number INTEGER, version TEXT NOT NULL, written_seq INTEGER NOT NULL,"
    " technique TEXT, PRIMARY KEY (op, number)",
    "attempts": "op TEXT, version TEXT, attempt INTEGER, sha256 TEXT NOT NULL, entry TEXT NOT NULL,"
    " language TEXT NOT NULL, suffix TEXT NOT NULL, seq INTEGER NOT NULL, compilation TEXT,"
    " compiled_seq INTEGER,"
    " PRIMARY KEY (op, version, attempt)",
    "verdicts": "op TEXT, version TEXT, sha256 TEXT, seq INTEGER NOT NULL, status TEXT NOT NULL,"
    " failed INTEGER NOT NULL, coverage TEXT NOT NULL, device_kind TEXT, cases TEXT, badges TEXT,"
    " PRIMARY KEY (op, version, sha256)",
    "passes": "op TEXT, sha256 TEXT, dtype TEXT, device_kind TEXT, seq INTEGER NOT NULL,"
    " passed INTEGER NOT NULL, PRIMARY KEY (op, sha256, dtype, device_kind)",
    "times": "op TEXT, version TEXT, sha256 TEXT, seq INTEGER, clock TEXT, final_us REAL,"
    " speedup REAL, means_us TEXT NOT NULL, badges TEXT, PRIMARY KEY (op, version, sha256, seq)",
    "timed": "op TEXT, version TEXT, seq INTEGER NOT NULL, PRIMARY KEY (op, version)",
}
VOIDING = (NotTimedCode.WRONG_OUTPUT, NotTimedCode.CACHED, NotTimedCode.IMPOSSIBLE)
_BADGES = TypeAdapter(tuple[Badge, ...])
_DELETE_RESULTS = (
    "DELETE FROM verdicts WHERE op = ?",
    "DELETE FROM passes WHERE op = ?",
    "DELETE FROM times WHERE op = ?",
)


def badges_json(badges: tuple[Badge, ...]) -> str:
    """Return badges as JSON for the tables."""
    return _BADGES.dump_json(badges).decode()


def parse_badges(text: str | None) -> tuple[Badge, ...]:
    """Return badges from the JSON of the tables."""
    return _BADGES.validate_json(text) if text else ()


def rebuild(conn: sqlite3.Connection) -> None:
    """Rebuild the tables from the events, within the caller's transaction."""
    for name, columns in _TABLES.items():
        conn.execute(f"DROP TABLE IF EXISTS {name}")
        conn.execute(f"CREATE TABLE {name} ({columns})")
    for seq, text in conn.execute("SELECT seq, json FROM events ORDER BY seq"):
        apply(conn, seq, queries.parse_stored(seq, text))


def dump_tables(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the current state, in a fixed order."""
    return {
        name: sorted(conn.execute(f"SELECT * FROM {name}").fetchall(), key=repr)  # noqa: S608
        for name in _TABLES
    }


def insert(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Append an event to the log."""
    conn.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            seq, event.uuid, event.op, event.verb, event.version, event.attempt, event.time,
            event.model_dump_json(exclude_none=True),
        ),
    )  # fmt: skip


def apply(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Apply an event to the tables, within the caller's transaction."""
    conn.execute(
        "INSERT INTO ops (op, state, first_seq, n_events) VALUES (?, ?, ?, 1) ON CONFLICT (op) DO"
        " UPDATE SET state = excluded.state, n_events = n_events + 1",
        (event.op, event.state_after, seq),
    )
    if change := _CHANGES.get(event.verb):
        change(conn, seq, event)


# ----------------------------------------------------------------------------------- changes


def _apply_written(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    source = event.source
    if source is None:
        return
    version = queries.known_version(conn, event.op, source.number) or source.version
    conn.execute(
        "INSERT INTO versions VALUES (?, ?, ?, ?, ?) ON CONFLICT (op, number) DO UPDATE SET"
        " written_seq = excluded.written_seq, technique = COALESCE(excluded.technique, technique)",
        (event.op, source.number, version, seq, _technique(event)),
    )
    key = (event.op, version)
    own_key = (source.attempt, source.sha256, source.entry, source.language)
    past = conn.execute(
        "SELECT attempt, sha256, entry, language FROM attempts WHERE op = ? AND version = ?", key
    ).fetchall()
    if own_key in past:
        return
    _delete_other_entries(conn, event.op, source)
    # Two clones of a repository may have written the same attempt: the later gets the next number.
    attempt = max([source.attempt, *(number + 1 for number, *_ in past)])
    conn.execute(
        "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
        (*key, attempt, source.sha256, source.entry, source.language, source.suffix, seq),
    )


def _technique(event: Event) -> str | None:
    technique = event.args.get("technique")
    return str(technique) if technique else None


def _delete_other_entries(conn: sqlite3.Connection, op: str, source: KernelSource) -> None:
    """Delete verdicts on the same text with another entry point or in another language."""
    other = conn.execute(
        "SELECT 1 FROM attempts WHERE op = ? AND sha256 = ? AND (entry, language) != (?, ?)",
        (op, source.sha256, source.entry, source.language),
    ).fetchone()
    for statement in _DELETE_RESULTS if other else ():
        conn.execute(f"{statement} AND sha256 = ?", (op, source.sha256))


def _is_for_another_target(conn: sqlite3.Connection, op: str, result: Compilation) -> bool:
    first = queries.compilation(conn, op, result.sha256)
    return first is not None and first.target != result.target


def _apply_compiled(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Set the compilation of an attempt; one for another target than the first is only a look."""
    result = event.result
    if isinstance(result, Compilation) and not _is_for_another_target(conn, event.op, result):
        conn.execute(
            "UPDATE attempts SET compilation = ?, compiled_seq = ? WHERE op = ? AND version = ? AND"
            " sha256 = ?",
            (
                result.status,
                seq,
                event.op,
                _stored_name(conn, event.op, result.version),
                result.sha256,
            ),
        )


def _apply_validated(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    result = event.result
    if not isinstance(result, Validation):
        return
    key = (event.op, _stored_name(conn, event.op, result.version), result.sha256)
    if _replaces_verdict(conn, key, result):
        conn.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *key, seq, result.status, result.status.failed, result.coverage.model_dump_json(),
                result.device_kind, _cases(result), badges_json(result.badges),
            ),
        )  # fmt: skip
    for dtype, kind, passed in _per_dtype(result):
        conn.execute(
            "INSERT OR REPLACE INTO passes VALUES (?, ?, ?, ?, ?, ?)",
            (event.op, result.sha256, dtype, kind, seq, passed),
        )


def _replaces_verdict(conn: sqlite3.Connection, key: tuple[str, str, str], new: Validation) -> bool:
    """Return True if a verdict replaces the previous one on the same source.

    An interrupted validation replaces nothing. A quick pass is weaker than a full one, and one in
    the interpreter weaker than one on a GPU. A spot check of some shapes can fail a version, but
    its pass does not replace a failure. A refusal of these shapes is only a stated limit.
    """
    old = conn.execute(
        "SELECT status, failed, device_kind, coverage FROM verdicts WHERE op = ? AND version = ?"
        " AND sha256 = ?",
        key,
    ).fetchone()
    if old is None:
        return True
    status, failed, device_kind, old_coverage = old
    if not (new.passed or new.status.failed):
        return not (failed or status == "passed")
    if _only_refuses(new) or (new.coverage.is_spot_check and new.passed and failed):
        return False
    if new.status.failed or status != "passed":
        return True
    before = Coverage.model_validate_json(old_coverage)
    return _weight(new.device_kind, new.coverage) >= _weight(device_kind, before)


def _weight(device_kind: str | None, coverage: Coverage) -> tuple[bool, bool, bool]:
    return device_kind == "gpu", coverage.is_full, not coverage.is_spot_check


def _only_refuses(validation: Validation) -> bool:
    """Return True for a spot check whose only result is that the shapes are refused."""
    return validation.coverage.is_spot_check and validation.status is Status.REJECTED


def _cases(validation: Validation) -> str:
    """Return passed and run cases as text: `46/46`."""
    run = validation.run_cases
    return f"{sum(c.status == 'passed' for c in run)}/{len(run)}"


def _per_dtype(validation: Validation) -> Iterator[tuple[str, DeviceKind, bool]]:
    """Yield (dtype, device kind, passed) for each dtype that a validation decides.

    A failure applies to the dtypes of its failed cases, or to all dtypes if it has none (a crash at
    import). It applies to both device kinds if the device is not recorded.
    """
    kinds: tuple[DeviceKind, ...] = ("gpu", "interpreter")
    if validation.device_kind:
        kinds = (validation.device_kind,)
    if validation.passed and validation.coverage.is_spot_check:
        return
    if validation.passed and validation.device_kind:
        yield from ((dtype, validation.device_kind, True) for dtype in validation.dtypes)
    elif validation.status.failed and not _only_refuses(validation):
        wrong = tuple(dict.fromkeys(c.case.dtype for c in validation.failed_cases))
        yield from ((d, kind, False) for d in wrong or validation.dtypes for kind in kinds)


def _has_complete_timing(
    conn: sqlite3.Connection, op: str, version: str, benchmark: Benchmark
) -> bool:
    """Return True if the same source of a version has a benchmark that was not cut short."""
    newest = queries.latest_timing(conn, op, version)
    sources = set(zip(benchmark.versions, benchmark.sha256s, strict=True))
    return newest is not None and newest.passed and any(
        source in sources for source in zip(newest.versions, newest.sha256s, strict=True)
        if source[0] == version
    )  # fmt: skip


def _apply_benchmarked(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    result = event.result
    if not isinstance(result, Benchmark):
        return
    for version in result.versions if result.timings else ():
        name = _stored_name(conn, event.op, version)
        if result.passed or not _has_complete_timing(conn, event.op, name, result):
            conn.execute("INSERT OR REPLACE INTO timed VALUES (?, ?, ?)", (event.op, name, seq))
    if not result.passed:
        _void_times(conn, event.op, result)
        return
    conn.execute("UPDATE ops SET benchmark_seq = ? WHERE op = ?", (seq, event.op))
    for version, sha256 in zip(result.versions, result.sha256s, strict=False):
        means = {t.size: t.mean_us for t in result.timings if t.provider == version}
        if means and version in result.providers:
            conn.execute(
                "INSERT INTO times VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    event.op, _stored_name(conn, event.op, version), sha256, seq, result.clock,
                    result.final_us(version), result.speedup(version), json.dumps(means),
                    badges_json(result.badges),
                ),
            )  # fmt: skip


def _void_times(conn: sqlite3.Connection, op: str, result: Benchmark) -> None:
    """Remove the earlier times of sources whose outputs or times were found to be wrong."""
    culprits = {gap.provider for gap in result.not_timed if gap.code in VOIDING}
    for version, sha256 in zip(result.versions, result.sha256s, strict=True):
        if version in culprits:
            name = _stored_name(conn, op, version)
            keys = (op, name, sha256)
            conn.execute("DELETE FROM times WHERE op = ? AND version = ? AND sha256 = ?", keys)


def _apply_defined(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Record a reference; a changed one voids every verdict and time."""
    (old_seq,) = conn.execute("SELECT reference_seq FROM ops WHERE op = ?", (event.op,)).fetchone()
    old = queries.event_at(conn, old_seq) if old_seq else None
    if old is None or old.reference != event.reference:
        for statement in (*_DELETE_RESULTS, "DELETE FROM timed WHERE op = ?"):
            conn.execute(statement, (event.op,))
    conn.execute("UPDATE ops SET reference_seq = ? WHERE op = ?", (seq, event.op))
    if event.facts:
        conn.execute("UPDATE ops SET facts_seq = ? WHERE op = ?", (seq, event.op))


def _apply_reset(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    conn.execute("UPDATE ops SET reset_seq = ? WHERE op = ?", (seq, event.op))


def _stored_name(conn: sqlite3.Connection, op: str, version: str) -> str:
    return queries.known_version(conn, op, parse_version(version)[0]) or version


_CHANGES: dict[Verb, Callable[[sqlite3.Connection, int, Event], None]] = {
    "written": _apply_written,
    "compiled": _apply_compiled,
    "validated": _apply_validated,
    "benchmarked": _apply_benchmarked,
    "defined": _apply_defined,
    "reset": _apply_reset,
}


# ------------------------------------------------------------------------------------ writing


def next_seq(conn: sqlite3.Connection) -> int:
    """Return the number of the next event, within the caller's transaction."""
    return int(conn.execute("SELECT COALESCE(MAX(seq), 0) + 1 FROM events").fetchone()[0])


def set_state(conn: sqlite3.Connection, op: str, to: State) -> None:
    """Store the op's state after the event that was just applied."""
    conn.execute("UPDATE ops SET state = ? WHERE op = ?", (to, op))
