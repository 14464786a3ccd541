"""Views of times at different moments: then against now, a check for regressions, a history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triton_magics.model import (
    History,
    HistoryPoint,
    RegressionCheck,
    Retiming,
    SpeedChange,
    Status,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Items, Line, Table
from triton_magics.rendering.numbers import (
    MISSING,
    count_text,
    list_text,
    percent_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.words import VERDICTS, join_parts, next_line

MOST_POINTS = 30
TORCH_MOVED = 0.05  # a change of torch's own time that is worth a line


def retiming_view(value: Retiming, phrase: Phrase) -> Document:
    """Return the verdict, the changed parts of the environment, a row for each time."""
    again = NextStep("history", {"op": value.op})
    return (
        _retiming_line(value),
        *((_change_table(value.changes),) if value.changes else ()),
        *_remarks(value),
        next_line(step_code(again, phrase)),
    )


def _retiming_line(value: Retiming) -> Line:
    if not value.changes:
        reasons = list_text([f"{short(v)}: {why}" for v, why in value.not_compared.items()])
        if value.status is Status.PASSED:
            return Line(f"{value.op}: {reasons or 'nothing was timed'}", "warn", "NOT COMPARED")
        status, word = VERDICTS[value.status]
        return Line(f"{value.op}: {value.message or reasons}", status, word)
    parts = (f"{value.op}: {_counts(value.changes)}", list_text(value.differences) or None)
    if value.slower:
        worst = min(value.slower, key=lambda c: c.ratio or 1.0)
        return Line(join_parts((_change_text(value.op, worst), *parts[1:])), "bad", "SLOWER")
    undecided = any(c.verdict == "undecided" for c in value.changes)
    faster = any(c.verdict == "faster" for c in value.changes)
    lead = "UNDECIDED" if undecided else "FASTER" if faster else "SAME"
    return Line(join_parts(parts), "warn" if undecided else "good", lead)


def _counts(changes: Sequence[SpeedChange]) -> str:
    words = ("faster", "same", "slower", "undecided")
    counts = {word: sum(c.verdict == word for c in changes) for word in words}
    return ", ".join(f"{n} {word}" for word, n in counts.items() if n)


def _change_text(op: str, change: SpeedChange) -> str:
    """Return `softmax v2 at large is 8 % slower: 33.0 us, was 30.5 us`."""
    percent = percent_text(100 * (1 / (change.ratio or 1.0) - 1))
    return (
        f"{op} {short(change.version)} at {change.size} is {percent} slower: "
        f"{time_text(change.now_us)}, was {time_text(change.then_us)}"
    )


def _change_table(changes: Iterable[SpeedChange]) -> Table:
    header = ("version", "size", "then", "now", "over torch then", "now", "change", "verdict")
    return Table("then and now", header, tuple(map(_change_row, changes)), "llrrrrrl")


def _change_row(c: SpeedChange) -> tuple[str, ...]:
    width = f" ({c.low:.2f} to {c.high:.2f})" if c.low and c.high else ""
    return (
        short(c.version), c.size, time_text(c.then_us), time_text(c.now_us),
        ratio_text(c.torch_then_us / c.then_us), ratio_text(c.torch_now_us / c.now_us),
        f"{ratio_text(c.ratio)}{width}", c.verdict or c.note or MISSING,
    )  # fmt: skip


def _remarks(value: Retiming) -> Document:
    remarks = [f"{short(v)} not compared: {why}" for v, why in value.not_compared.items()]
    recorded = dict.fromkeys(f"{c.recorded[:16]}, {c.then.line}" for c in value.changes)
    remarks += [f"then: {text}" for text in recorded]
    if value.environment:
        where = f"{value.python}, " if value.python else ""
        remarks.append(f"now: {where}{value.environment.line}")
    moved = [c for c in value.changes if abs(c.torch_ratio - 1) > TORCH_MOVED]
    if moved and value.basis == "torch":
        far = max(moved, key=lambda c: abs(c.torch_ratio - 1))
        remarks.append(
            f"torch itself changed, at {far.size} from {time_text(far.torch_then_us)} to "
            f"{time_text(far.torch_now_us)}: the ratios hold that too"
        )
    if value.basis == "time":
        remarks.append("the change is of the times: the two environments have different torch")
    return (Items(tuple(remarks)),) if remarks else ()


def regression_check_view(value: RegressionCheck, phrase: Phrase) -> Document:
    """Return the verdict, each slower version, and the ops that were not compared."""
    ops = {c.sha256: r.op for r in value.retimings for c in r.changes}
    slower = tuple(_change_text(ops[c.sha256], c) for c in value.slower)
    once = tuple(
        f"{_change_text(ops[c.sha256], c)}; not so in a second session" for c in value.not_confirmed
    )
    skipped = [f"{op}: {why}" for op, why in value.skipped.items()]
    skipped += [
        f"{r.op} {short(v)}: {why}" for r in value.retimings for v, why in r.not_compared.items()
    ]
    changes = [c for r in value.retimings for c in r.changes]
    again = NextStep("history", {"op": value.ops[0] if value.ops else "softmax"})
    return (
        _check_line(value),
        *((Items(slower),) if slower else ()),
        *((Items(once),) if once else ()),
        *((Items(tuple(skipped)),) if skipped else ()),
        *((_change_table(changes),) if changes else ()),
        next_line(step_code(again, phrase)),
    )


def _check_line(value: RegressionCheck) -> Line:
    times = count_text(value.compared, "time")
    limit = f"more than {percent_text(100 * value.threshold)}"
    if value.status is Status.UNAVAILABLE:
        return Line("no time could be compared with a record", "warn", "NOT COMPARED")
    if value.slower:
        text = f"{len(value.slower)} of {times} slower by {limit}, in two sessions"
        return Line(text, "bad", "REGRESSION")
    return Line(f"none of {times} slower by {limit}", "good", "NO REGRESSION")


def history_view(value: History, phrase: Phrase) -> Document:
    """Return the newest speedup beside the first of its environment, and every point."""
    shown = value.points[-MOST_POINTS:]
    left = len(value.points) - len(shown)
    path = (Line(f"written: `{value.path}`", "good"),) if value.path else ()
    step = step_code(NextStep("bench", {"op": value.op, "again": True}), phrase)
    return (
        Line(history_finding(value), "info", "HISTORY"),
        *path,
        _history_table(shown),
        *((Items((f"{left} older ones are not shown; to_records() has all",)),) if left else ()),
        next_line(f"{step} times them now"),
    )


def history_finding(value: History) -> str:
    """Return the versions' newest speedups and the number of benchmarks and environments."""
    newest = {p.version: p for p in value.points}
    each = ", ".join(f"{short(v)} {ratio_text(p.speedup)}" for v, p in newest.items())
    n = len(dict.fromkeys(p.environment for p in value.points))
    benchmarks = count_text(len(value.times), "benchmark")
    environments = count_text(n, "environment")
    return f"{value.op}: {each} over torch (geometric mean); {benchmarks}, {environments}"


def _history_table(points: Sequence[HistoryPoint]) -> Table:
    """Return a row for each point; the caption names an environment that all of them have."""
    header = ("time", "version", "source", "dtype", "geomean", "final", "environment")
    rows = tuple(map(_history_row, points))
    environments = {row[-1] for row in rows}
    if len(environments) == 1:
        caption = f"recorded benchmarks on {environments.pop()}"
        return Table(caption, header[:-1], tuple(row[:-1] for row in rows), "llllrr")
    return Table("recorded benchmarks", header, rows, "llllrrl")


def _history_row(p: HistoryPoint) -> tuple[str, ...]:
    driver = f"driver {p.driver}, " if p.driver else ""
    where = f"{p.device}, {driver}torch {p.torch}, triton {p.triton}"
    final = time_text(p.final_us) if p.final_us else MISSING
    return (
        p.time[:16].replace("T", " "), short(p.version), p.sha256[:8], p.dtype,
        ratio_text(p.speedup), final, where,
    )  # fmt: skip


__all__ = ["history_finding", "history_view", "regression_check_view", "retiming_view"]
