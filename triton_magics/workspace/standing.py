"""Each version as it stands: verdict, time and rank of its newest attempt, from the tables."""

from __future__ import annotations

import json
import re
import sqlite3
from typing import Any

from triton_magics.model import Best, Verb, VersionState, short
from triton_magics.workspace import reading
from triton_magics.workspace.modules import module_path

_OF_A_VERSION = re.compile(r"v\d+: ")  # a badge of one of the versions of a benchmark
EXHAUSTED_AT = 3  # failed attempts

# A benchmark with all three sizes on a GPU says more than a part of one, or the interpreter.
_NEWEST = """
SELECT v.version, a.attempt, a.entry, a.sha256, a.compilation, v.written_seq, v.technique,
       d.status, d.plan, d.device_kind, d.cases, d.badges AS verdict_badges,
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
# Of the benchmarks on a GPU the one that timed the most versions as they now stand, and of those
# the newest: timing one version alone does not make it the best.
_RANKED = """
SELECT t.seq, t.version, t.final_us FROM times t
JOIN attempts a ON a.op = t.op AND a.version = t.version AND a.sha256 = t.sha256 AND a.attempt =
    (SELECT MAX(attempt) FROM attempts WHERE op = t.op AND version = t.version)
JOIN verdicts d ON d.op = t.op AND d.version = t.version AND d.sha256 = t.sha256
WHERE t.op = ? AND t.clock = 'gpu' AND t.final_us IS NOT NULL AND d.status = 'passed'
"""


_CHOSEN: tuple[Verb, ...] = ("chosen",)


def versions(conn: sqlite3.Connection, op: str) -> tuple[VersionState, ...]:
    """The op's versions, by number."""
    cursor = conn.execute(_NEWEST, (op,))
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    reset_seq = _reset_seq(conn, op)
    failed = dict(conn.execute(_FAILED, (op, reset_seq)).fetchall())
    last = max((row["written_seq"] for row in rows), default=0)
    _, best = ranking(conn, op)
    hand = _by_hand(conn, op, rows)
    best = hand.source.version if hand else best
    return tuple(
        _version_state(
            op,
            row,
            attempts_failed=failed.get(row["version"], 0),
            best=row["version"] == best,
            by_hand=hand.reason if hand and row["version"] == best else None,
            counted=row["written_seq"] > reset_seq,
            current=row["written_seq"] == last > reset_seq,
        )
        for row in rows
    )


def _version_state(op: str, row: dict[str, Any], **known: Any) -> VersionState:
    passed = row["status"] == "passed"
    return VersionState(
        version=row["version"],
        attempt=row["attempt"],
        exhausted=known["attempts_failed"] >= EXHAUSTED_AT and not passed,
        entry=row["entry"],
        technique=row["technique"],
        path=module_path(op, row["version"]),
        sha256=row["sha256"],
        compilation=row["compilation"],
        validation=row["status"],
        validation_device=row["device_kind"],
        validation_plan=row["plan"],
        cases=row["cases"],
        final_us=row["final_us"],
        means_us=json.loads(row["means_us"] or "{}"),
        clock=row["clock"],
        speedup=row["speedup"],
        badges=_badges(row),
        **known,
    )


def ranking(conn: sqlite3.Connection, op: str) -> tuple[int | None, str | None]:
    """Number of the benchmark event that ranks the op's versions, and the best of them.

    None and None where nothing that stands was timed on a GPU.
    """
    finals: dict[int, dict[str, float]] = {}
    for seq, version, final_us in conn.execute(_RANKED, (op,)):
        finals.setdefault(seq, {})[version] = final_us
    if not finals:
        return None, None
    seq = max(finals, key=lambda s: (len(finals[s]), s))
    return seq, min(finals[seq], key=finals[seq].__getitem__)


def _by_hand(conn: sqlite3.Connection, op: str, rows: list[dict[str, Any]]) -> Best | None:
    """The newest choice, if a person made it and what was chosen still stands and is right."""
    newest = reading.seqs(conn, op, verbs=_CHOSEN, limit=1)
    chosen = reading.event_at(conn, newest[-1]).result if newest else None
    if not isinstance(chosen, Best) or not chosen.by_hand:
        return None
    standing = {(row["version"], row["sha256"]) for row in rows if row["status"] == "passed"}
    return chosen if (chosen.source.version, chosen.source.sha256) in standing else None


def _reset_seq(conn: sqlite3.Connection, op: str) -> int:
    row = conn.execute("SELECT reset_seq FROM ops WHERE op = ?", (op,)).fetchone()
    return int(row[0]) if row else 0


def _badges(row: dict[str, Any]) -> tuple[str, ...]:
    """What its verdict and its time carry; of a benchmark of several versions, only its own."""
    verdict = json.loads(row["verdict_badges"] or "[]")
    whose = {f"{short(row['version'])}: {badge}" for badge in verdict}
    own = f"{short(row['version'])}: "
    timed = [
        badge
        for badge in json.loads(row["time_badges"] or "[]")
        if badge not in whose and (badge.startswith(own) or not _OF_A_VERSION.match(badge))
    ]
    return tuple(dict.fromkeys((*verdict, *timed)))
