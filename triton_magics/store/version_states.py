"""Read each version's current state: verdict, time and rank of its newest attempt."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from triton_magics.model import (
    Badge,
    Best,
    Coverage,
    Status,
    Verb,
    VersionState,
    short,
    validation_gap,
)
from triton_magics.store import projections, queries
from triton_magics.store.module_header import version_path

EXHAUSTED_AT = 3  # failed attempts

# A benchmark with all three sizes on a GPU comes before a partial one or the interpreter's.
_NEWEST = """
SELECT v.version, a.attempt, a.entry, a.language, a.suffix, a.sha256, a.compilation, v.written_seq,
       v.technique,
       d.status, d.coverage, d.device_kind, d.cases, d.badges AS verdict_badges,
       t.clock, t.final_us, t.speedup, t.means_us, t.badges AS time_badges
FROM versions v
JOIN attempts a ON a.op = v.op AND a.version = v.version AND a.attempt =
    (SELECT MAX(attempt) FROM attempts WHERE op = v.op AND version = v.version)
LEFT JOIN verdicts d ON d.op = v.op AND d.version = v.version AND d.sha256 = a.sha256
LEFT JOIN times t ON t.rowid =
    (SELECT rowid FROM times WHERE op = v.op AND version = v.version AND sha256 = a.sha256
     ORDER BY clock = 'gpu' DESC, final_us IS NOT NULL DESC, seq DESC LIMIT 1)
WHERE v.op = ? ORDER BY v.number
"""
_FAILED = """
SELECT version, COUNT(*) FROM verdicts WHERE op = ? AND failed AND seq > ? GROUP BY version
"""
# Of the benchmarks on a GPU, the one that timed the most newest attempts, and of those the newest:
# timing one version alone does not make it the best. Only full passes rank.
_RANKED = """
SELECT t.seq, t.version, t.final_us, d.status, d.coverage, d.badges FROM times t
JOIN attempts a ON a.op = t.op AND a.version = t.version AND a.sha256 = t.sha256 AND a.attempt =
    (SELECT MAX(attempt) FROM attempts WHERE op = t.op AND version = t.version)
JOIN verdicts d ON d.op = t.op AND d.version = t.version AND d.sha256 = t.sha256
WHERE t.op = ? AND t.clock = 'gpu' AND t.final_us IS NOT NULL AND d.status = 'passed'
"""


_CHOSEN: tuple[Verb, ...] = ("chosen",)


def versions(conn: sqlite3.Connection, op: str) -> tuple[VersionState, ...]:
    """Return the states of the op's versions, by number."""
    cursor = conn.execute(_NEWEST, (op,))
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    reset_seq = _reset_seq(conn, op)
    failed = dict(conn.execute(_FAILED, (op, reset_seq)).fetchall())
    last = max((row["written_seq"] for row in rows), default=0)
    _, best = ranking(conn, op)
    choice = _choice_by_hand(conn, op, rows)
    best = choice.source.version if choice else best
    return tuple(
        _version_state(
            op,
            row,
            attempts_failed=failed.get(row["version"], 0),
            best=row["version"] == best,
            by_hand=choice.reason if choice and row["version"] == best else None,
            counted=row["written_seq"] > reset_seq,
            current=row["written_seq"] == last > reset_seq,
        )
        for row in rows
    )


def _version_state(op: str, row: dict[str, Any], **rank: Any) -> VersionState:
    failed = row["status"] is not None and Status(row["status"]).failed
    return VersionState(
        version=row["version"],
        attempt=row["attempt"],
        exhausted=rank["attempts_failed"] >= EXHAUSTED_AT and failed,
        entry=row["entry"],
        technique=row["technique"],
        language=row["language"],
        path=version_path(op, row["version"], row["suffix"]),
        sha256=row["sha256"],
        compilation=row["compilation"],
        validation=row["status"],
        validation_device=row["device_kind"],
        coverage=_coverage(row["coverage"]),
        cases=row["cases"],
        final_us=row["final_us"],
        means_us=json.loads(row["means_us"] or "{}"),
        clock=row["clock"],
        speedup=row["speedup"],
        badges=_badges(row),
        **rank,
    )


def ranking(conn: sqlite3.Connection, op: str) -> tuple[int | None, str | None]:
    """Return the number of the benchmark event that ranks the op's versions, and the best one.

    None and None if no newest attempt that is validated in full was timed on a GPU.
    """
    finals: dict[int, dict[str, float]] = {}
    for seq, version, final_us, *verdict in conn.execute(_RANKED, (op,)):
        if _is_full_pass(version, *verdict):
            finals.setdefault(seq, {})[version] = final_us
    if not finals:
        return None, None
    seq = max(finals, key=lambda s: (len(finals[s]), s))
    return seq, min(finals[seq], key=finals[seq].__getitem__)


def _is_full_pass(
    version: str, status: str | None, coverage: str | None, badges: str | None
) -> bool:
    verdict = Status(status) if status else None
    own = projections.parse_badges(badges)
    return validation_gap(version, verdict, _coverage(coverage), own) is None


def _coverage(text: str | None) -> Coverage | None:
    return Coverage.model_validate_json(text) if text else None


def _choice_by_hand(conn: sqlite3.Connection, op: str, rows: list[dict[str, Any]]) -> Best | None:
    """Return the newest choice of a person, if its source is a newest attempt, passed in full."""
    newest = queries.seqs(conn, op, verbs=_CHOSEN, limit=1)
    choice = queries.event_at(conn, newest[-1]).result if newest else None
    if not isinstance(choice, Best) or not choice.by_hand:
        return None
    passed = {
        (row["version"], row["sha256"])
        for row in rows
        if _is_full_pass(row["version"], row["status"], row["coverage"], row["verdict_badges"])
    }
    return choice if (choice.source.version, choice.source.sha256) in passed else None


def _reset_seq(conn: sqlite3.Connection, op: str) -> int:
    row = conn.execute("SELECT reset_seq FROM ops WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def _badges(row: dict[str, Any]) -> tuple[Badge, ...]:
    """Return the badges of its verdict and its time; of a shared benchmark, only its own."""
    verdict = projections.parse_badges(row["verdict_badges"])
    own = short(row["version"])
    shown = [*verdict, *(badge.evolve(version=own) for badge in verdict)]
    timed = projections.parse_badges(row["time_badges"])
    return (*verdict, *(b for b in timed if b.version in (None, own) and b not in shown))
