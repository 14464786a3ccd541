"""Views of the report over all ops and of the workspace summary."""

from __future__ import annotations

from triton_magics.model import OpResult, Pause, Report, Setback, Summary, short
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Document, Line, Markdown, Table, code
from triton_magics.rendering.numbers import MISSING, count_text, ratio_text, time_text
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.state import missing_text
from triton_magics.rendering.views.words import FIRST_STEP, VERDICTS, join_parts, next_line, subject


def report_view(value: Report, phrase: Phrase) -> Document:
    """Return the finished ops, the best version of each, the failures, the next step."""
    if not value.ops:
        return (
            Line("no op has been opened here", "info", "REPORT"),
            next_line(step_code(FIRST_STEP, phrase)),
        )
    setbacks = (_setbacks_table(value),) if value.setbacks else ()
    return (_report_line(value), _ops_table(value), *setbacks, next_line(_next(value, phrase)))


def _report_line(value: Report) -> Line:
    means = value.geomean_speedup
    text = join_parts(
        (
            f"{value.done} of {count_text(len(value.ops), 'op')} done",
            f"{ratio_text(means)} as fast as torch (geometric mean)" if means else None,
            f"{count_text(len(value.setbacks), 'version')} failed" if value.setbacks else None,
        )
    )
    if value.paused_op and value.paused_op.paused:
        at = subject(value.paused_op.op, value.paused_op.paused.version)
        return Line(f"at {at} · {text}", "warn", "PAUSED")
    return Line(text, "good" if value.done == len(value.ops) else "info", "REPORT")


def _ops_table(value: Report) -> Table:
    header = ("op", "state", "versions", "right", "best", "final", "torch", "speedup")
    rows = tuple(_op_row(op) for op in value.ops)
    return Table("ops, each with its best version", header, rows, "llrrlrrr")


def _op_row(op: OpResult) -> tuple[str, ...]:
    versions = op.state.versions
    right = sum(v.validation is not None and VERDICTS[v.validation][0] == "good" for v in versions)
    return (
        op.op,
        "✓ done" if op.done else place_text(op),
        f"{len(versions)} of {op.state.min_writes}",
        str(right),
        op.best or MISSING,
        time_text(op.final_us),
        time_text(op.torch_us),
        ratio_text(op.speedup),
    )


def place_text(op: OpResult) -> str:
    """Return `paused at v2: not written yet`, or the state of the op and what it lacks."""
    if op.paused:
        return f"paused at {pause_text(op.paused)}"
    missing = missing_text(op.state)
    return f"{op.state.state}: {missing}" if missing else op.state.state


def _setbacks_table(value: Report) -> Table:
    header = ("version", "verdict", "failed attempts", "reason")
    rows = tuple(_setback_row(s) for s in value.setbacks)
    return Table("failed versions, and why", header, rows, "llrl")


def _setback_row(s: Setback) -> tuple[str, ...]:
    status, word = VERDICTS[s.status]
    tried = f"{s.attempts_failed}, given up" if s.exhausted else str(s.attempts_failed)
    return (
        f"{s.op} {short(s.version)}",
        f"{Line('', status).sign} {word.lower()}",
        tried,
        s.why,
    )


def pause_text(pause: Pause) -> str:
    """Return `v2: not written yet`."""
    if pause.failed_attempts is None:
        return f"{pause.version}: not written yet"
    return f"{pause.version}: attempt {pause.failed_attempts} of {pause.most_attempts} failed"


def _next(value: Report, phrase: Phrase) -> str:
    unfinished = [op for op in value.ops if not op.done]
    if not unfinished:
        return step_code(NextStep("log", {"op": value.ops[0].op}), phrase)
    first = unfinished[0]
    if first.paused:
        again = NextStep("ops", {"ops": tuple(op.op for op in value.ops)})
        write = NextStep("kernel", {"op": first.op, "version": first.paused.version})
        return f"{step_code(write, phrase)}, then {step_code(again, phrase)} continues"
    return step_code(first.state.next_step, phrase)


def report_finding(value: Report) -> str:
    """Return `softmax 1.6x, gelu 1.1x as fast as torch`, the finding of the report's plot."""
    speedups = [f"{op.op} {ratio_text(op.speedup)}" for op in value.ops if op.speedup]
    return f"{', '.join(speedups)} as fast as torch" if speedups else "no op was timed on a GPU"


def summary_view(value: Summary, _phrase: Phrase) -> Document:
    """Return the path, the length and the text of the summary."""
    size = f"{len(value.markdown):,} of {value.max_chars:,} characters"
    left = join_parts(value.left_out)
    return (
        Line(join_parts((code(value.path), size)), "good", "SUMMARY"),
        *((Line(f"left out to fit the length: {left}", "info"),) if left else ()),
        Markdown(value.markdown),
    )
