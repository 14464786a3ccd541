"""What follows from the events: tables of the current state, and what is read from them.

`apply` is the one function that changes them; `rebuild` empties them and applies every event again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator

from triton_magics.model import (
    Benchmark,
    Compilation,
    DeviceKind,
    Event,
    KernelSource,
    State,
    Status,
    Validation,
    Verb,
    parse_version,
)
from triton_magics.workspace import reading

SPOT_CHECK = "only some shapes"
# A verdict and a time belong to a source (its sha256), so a restored attempt has its own again.
# `passes` keeps the newest verdict per dtype and device kind, `verdicts` the one that stands,
# `timed` the newest benchmark with a time of a version, whatever came of it.
_TABLES = {
    "ops": "op TEXT PRIMARY KEY, state TEXT NOT NULL, first_seq INTEGER NOT NULL,"
    " n_events INTEGER NOT NULL, reset_seq INTEGER NOT NULL DEFAULT 0, reference_seq INTEGER,"
    " facts_seq INTEGER, benchmark_seq INTEGER",
    "versions": "op TEXT, number INTEGER, version TEXT NOT NULL, written_seq INTEGER NOT NULL,"
    " technique TEXT, PRIMARY KEY (op, number)",
    "attempts": "op TEXT, version TEXT, attempt INTEGER, sha256 TEXT NOT NULL, entry TEXT NOT NULL,"
    " seq INTEGER NOT NULL, compilation TEXT, compiled_seq INTEGER,"
    " PRIMARY KEY (op, version, attempt)",
    "verdicts": "op TEXT, version TEXT, sha256 TEXT, seq INTEGER NOT NULL, status TEXT NOT NULL,"
    " failed INTEGER NOT NULL, plan TEXT NOT NULL, device_kind TEXT, cases TEXT, badges TEXT,"
    " PRIMARY KEY (op, version, sha256)",
    "passes": "op TEXT, sha256 TEXT, dtype TEXT, device_kind TEXT, seq INTEGER NOT NULL,"
    " passed INTEGER NOT NULL, PRIMARY KEY (op, sha256, dtype, device_kind)",
    "times": "op TEXT, version TEXT, sha256 TEXT, seq INTEGER, clock TEXT, final_us REAL,"
    " speedup REAL, means_us TEXT NOT NULL, badges TEXT, PRIMARY KEY (op, version, sha256, seq)",
    "timed": "op TEXT, version TEXT, seq INTEGER NOT NULL, PRIMARY KEY (op, version)",
}
_FORGET_OP = (
    "DELETE FROM verdicts WHERE op = ?",
    "DELETE FROM passes WHERE op = ?",
    "DELETE FROM times WHERE op = ?",
)


def rebuild(conn: sqlite3.Connection) -> None:
    """Make the tables anew from the events; within the caller's transaction."""
    for name, columns in _TABLES.items():
        conn.execute(f"DROP TABLE IF EXISTS {name}")
        conn.execute(f"CREATE TABLE {name} ({columns})")
    for seq, text in conn.execute("SELECT seq, json FROM events ORDER BY seq"):
        apply(conn, seq, reading.parsed(seq, text))


def contents(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the current state, in one order."""
    return {
        name: sorted(conn.execute(f"SELECT * FROM {name}").fetchall(), key=repr)  # noqa: S608
        for name in _TABLES
    }


def insert(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Put an event into the log."""
    conn.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            seq, event.uuid, event.op, event.verb, event.version, event.attempt, event.time,
            event.model_dump_json(exclude_none=True),
        ),
    )  # fmt: skip


def apply(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Bring the tables from before an event to after it; within the caller's transaction."""
    conn.execute(
        "INSERT INTO ops (op, state, first_seq, n_events) VALUES (?, ?, ?, 1) ON CONFLICT (op) DO"
        " UPDATE SET state = excluded.state, n_events = n_events + 1",
        (event.op, event.state_after, seq),
    )
    if change := _CHANGES.get(event.verb):
        change(conn, seq, event)


# ----------------------------------------------------------------------------------- changes


def _written(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    source = event.source
    if source is None:
        return
    version = reading.known_version(conn, event.op, source.number) or source.version
    conn.execute(
        "INSERT INTO versions VALUES (?, ?, ?, ?, ?) ON CONFLICT (op, number) DO UPDATE SET"
        " written_seq = excluded.written_seq, technique = COALESCE(excluded.technique, technique)",
        (event.op, source.number, version, seq, _technique(event)),
    )
    key = (event.op, version)
    mine = (source.attempt, source.sha256, source.entry)
    past = conn.execute(
        "SELECT attempt, sha256, entry FROM attempts WHERE op = ? AND version = ?", key
    ).fetchall()
    if mine in past:
        return
    _forget_other_entries(conn, event.op, source)
    # Two clones of a repository may have written the same attempt: the later one moves up.
    attempt = max([source.attempt, *(a + 1 for a, _, _ in past)])
    conn.execute(
        "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, NULL, NULL)",
        (*key, attempt, source.sha256, source.entry, seq),
    )


def _technique(event: Event) -> str | None:
    said = event.args.get("technique")
    return str(said) if said else None


def _forget_other_entries(conn: sqlite3.Connection, op: str, source: KernelSource) -> None:
    """A verdict on the same text under another entry point says nothing about this one."""
    other = conn.execute(
        "SELECT 1 FROM attempts WHERE op = ? AND sha256 = ? AND entry != ?",
        (op, source.sha256, source.entry),
    ).fetchone()
    for statement in _FORGET_OP if other else ():
        conn.execute(f"{statement} AND sha256 = ?", (op, source.sha256))


def _compiled(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    result = event.result
    if isinstance(result, Compilation):
        conn.execute(
            "UPDATE attempts SET compilation = ?, compiled_seq = ? WHERE op = ? AND version = ? AND"
            " sha256 = ?",
            (result.status, seq, event.op, _stored(conn, event.op, result.version), result.sha256),
        )


def _validated(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    result = event.result
    if not isinstance(result, Validation):
        return
    key = (event.op, _stored(conn, event.op, result.version), result.sha256)
    if _stands(conn, key, result):
        conn.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *key, seq, result.status, result.status.failed, _plan(result), result.device_kind,
                _cases(result), json.dumps(result.badges),
            ),
        )  # fmt: skip
    for dtype, kind, passed in _per_dtype(result):
        conn.execute(
            "INSERT OR REPLACE INTO passes VALUES (?, ?, ?, ?, ?, ?)",
            (event.op, result.sha256, dtype, kind, seq, passed),
        )


def _stands(conn: sqlite3.Connection, key: tuple[str, str, str], new: Validation) -> bool:
    """Whether a verdict takes the place of the one before it, on the same source.

    An interrupted validation says nothing; a quick pass says less than a full one, and the
    interpreter's less than the GPU's. A look at some shapes can fail a version; one that passes
    says nothing of where another failed, and a refusal of these shapes is a limit that is stated.
    """
    old = conn.execute(
        "SELECT status, failed, device_kind, plan FROM verdicts WHERE op = ? AND version = ? AND"
        " sha256 = ?",
        key,
    ).fetchone()
    if old is None:
        return True
    status, failed, device_kind, plan = old
    if not (new.passed or new.status.failed):
        return not (failed or status == "passed")
    if _only_refuses(new) or (new.spot_check and new.passed and failed):
        return False
    if new.status.failed or status != "passed":
        return True
    return _weight(new.device_kind, _plan(new)) >= _weight(device_kind, plan)


def _weight(device_kind: str | None, plan: str) -> tuple[bool, bool, bool]:
    return device_kind == "gpu", plan == "full", plan != SPOT_CHECK


def _only_refuses(validation: Validation) -> bool:
    """Whether it says no more than that some shapes are refused."""
    return validation.spot_check and validation.status is Status.REJECTED


def _plan(validation: Validation) -> str:
    """`full`, `quick`; a look at some shapes is neither."""
    return SPOT_CHECK if validation.spot_check else validation.plan


def _cases(validation: Validation) -> str:
    """`46/46`: how many of the cases that were run passed."""
    run = validation.run_cases
    return f"{sum(c.status == 'passed' for c in run)}/{len(run)}"


def _per_dtype(validation: Validation) -> Iterator[tuple[str, DeviceKind, bool]]:
    """(dtype, device kind, passed) for what a validation says about each dtype.

    A failure speaks of the dtypes of its failed cases, of all where it has none (a crash at
    import), and of both device kinds where it does not know on which it was.
    """
    kinds: tuple[DeviceKind, ...] = ("gpu", "interpreter")
    if validation.device_kind:
        kinds = (validation.device_kind,)
    if validation.passed and validation.spot_check:
        return
    if validation.passed and validation.device_kind:
        yield from ((dtype, validation.device_kind, True) for dtype in validation.dtypes)
    elif validation.status.failed and not _only_refuses(validation):
        wrong = tuple(dict.fromkeys(c.case.dtype for c in validation.failed_cases))
        yield from ((d, kind, False) for d in wrong or validation.dtypes for kind in kinds)


def _benchmarked(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    result = event.result
    if not isinstance(result, Benchmark):
        return
    for version in result.versions if result.timings else ():
        key = (event.op, _stored(conn, event.op, version))
        conn.execute("INSERT OR REPLACE INTO timed VALUES (?, ?, ?)", (*key, seq))
    if not result.passed:
        return
    conn.execute("UPDATE ops SET benchmark_seq = ? WHERE op = ?", (seq, event.op))
    for version, sha256 in zip(result.versions, result.sha256s, strict=False):
        means = {t.size: t.mean_us for t in result.timings if t.provider == version}
        if means and version in result.providers:
            conn.execute(
                "INSERT INTO times VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    event.op, _stored(conn, event.op, version), sha256, seq, result.clock,
                    result.final_us(version), result.speedup(version), json.dumps(means),
                    json.dumps(result.badges),
                ),
            )  # fmt: skip


def _defined(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    """Another reference makes every verdict and time meaningless."""
    (old_seq,) = conn.execute("SELECT reference_seq FROM ops WHERE op = ?", (event.op,)).fetchone()
    old = reading.event_at(conn, old_seq) if old_seq else None
    if old is None or old.reference != event.reference:
        for statement in (*_FORGET_OP, "DELETE FROM timed WHERE op = ?"):
            conn.execute(statement, (event.op,))
    conn.execute("UPDATE ops SET reference_seq = ? WHERE op = ?", (seq, event.op))
    if event.facts:
        conn.execute("UPDATE ops SET facts_seq = ? WHERE op = ?", (seq, event.op))


def _reset(conn: sqlite3.Connection, seq: int, event: Event) -> None:
    conn.execute("UPDATE ops SET reset_seq = ? WHERE op = ?", (seq, event.op))


def _stored(conn: sqlite3.Connection, op: str, version: str) -> str:
    return reading.known_version(conn, op, parse_version(version)[0]) or version


_CHANGES: dict[Verb, Callable[[sqlite3.Connection, int, Event], None]] = {
    "written": _written,
    "compiled": _compiled,
    "validated": _validated,
    "benchmarked": _benchmarked,
    "defined": _defined,
    "reset": _reset,
}


# ------------------------------------------------------------------------------------ writing


def next_seq(conn: sqlite3.Connection) -> int:
    """The number of the next event; within the caller's transaction."""
    return int(conn.execute("SELECT COALESCE(MAX(seq), 0) + 1 FROM events").fetchone()[0])


def set_state(conn: sqlite3.Connection, op: str, to: State) -> None:
    """Where an op stands after the event that was just applied."""
    conn.execute("UPDATE ops SET state = ? WHERE op = ?", (to, op))
