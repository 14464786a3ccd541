"""The record over all ops: table, what failed and why, what comes next; a summary to go on with."""

from __future__ import annotations

from triton_magics.model import OpResult, Report, Setback, Summary, short
from triton_magics.report.blocks import Document, Line, Markdown, Table, code
from triton_magics.report.numbers import MISSING, count_text, ratio_text, short_ratio, time_text
from triton_magics.report.views.words import VERDICTS, following, joined, step_text


def report_view(value: Report) -> Document:
    """How many ops are through, each with its best version, what failed, where it goes on."""
    if not value.ops:
        return (Line("nothing was begun here", "info", "REPORT"), following("`%triton_op softmax`"))
    setbacks = (_setbacks_table(value),) if value.setbacks else ()
    return (_report_line(value), _ops_table(value), *setbacks, following(_next(value)))


def _report_line(value: Report) -> Line:
    means = value.geomean_speedup
    text = joined(
        (
            f"{value.done} of {count_text(len(value.ops), 'op')} through",
            f"{ratio_text(means)} as fast as torch (geometric mean)" if means else None,
            f"{count_text(len(value.setbacks), 'version')} failed" if value.setbacks else None,
        )
    )
    if value.paused_at:
        return Line(f"at {value.paused_at} · {text}", "warn", "PAUSED")
    return Line(text, "good" if value.done == len(value.ops) else "info", "REPORT")


def _ops_table(value: Report) -> Table:
    header = ("op", "where", "versions", "right", "best", "final", "torch", "speedup")
    rows = tuple(_op_row(op) for op in value.ops)
    return Table("ops, each with its best version", header, rows, "llrrlrrr")


def _op_row(op: OpResult) -> tuple[str, ...]:
    versions = op.state.versions
    right = sum(v.validation is not None and VERDICTS[v.validation][0] == "good" for v in versions)
    return (
        op.op,
        "✓ through" if op.done else f"paused at {op.paused}" if op.paused else op.state.state,
        f"{len(versions)} of {op.state.min_writes}",
        str(right),
        op.best or MISSING,
        time_text(op.final_us),
        time_text(op.torch_us),
        ratio_text(op.speedup),
    )


def _setbacks_table(value: Report) -> Table:
    header = ("version", "verdict", "attempts that failed", "why")
    rows = tuple(_setback_row(s) for s in value.setbacks)
    return Table("what failed, and why", header, rows, "llrl")


def _setback_row(s: Setback) -> tuple[str, ...]:
    status, word = VERDICTS[s.status]
    tried = f"{s.attempts_failed}, given up" if s.exhausted else str(s.attempts_failed)
    return (
        f"{s.op} {short(s.version)}",
        f"{Line('', status).sign} {word.lower()}",
        tried,
        s.why,
    )


def _next(value: Report) -> str:
    unfinished = [op for op in value.ops if not op.done]
    if not unfinished:
        return f"`%triton_log {value.ops[0].op}`"
    first = unfinished[0]
    if first.paused:
        again = "%triton_ops " + " ".join(op.op for op in value.ops)
        version = first.paused.partition(":")[0]
        return f"{code(f'%%triton_kernel {first.op} {version}')}, then {code(again)} goes on"
    return step_text(first.state.next_step)


def report_finding(value: Report) -> str:
    """`softmax 1.6x, gelu 1.1x as fast as torch`: what the report's plot shows."""
    known = [f"{op.op} {short_ratio(op.speedup)}" for op in value.ops if op.speedup]
    return f"{', '.join(known)} as fast as torch" if known else "nothing was timed on a GPU"


def summary_view(value: Summary) -> Document:
    """Where it was written, how long it is, and the text itself."""
    size = f"{len(value.markdown):,} of {value.max_chars:,} characters"
    left = joined(value.left_out)
    return (
        Line(joined((code(value.path), size)), "good", "SUMMARY"),
        *((Line(f"left out, for room: {left}", "info"),) if left else ()),
        Markdown(value.markdown),
    )
