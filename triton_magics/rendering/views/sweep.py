"""View of a sweep."""

from __future__ import annotations

from collections import Counter

from triton_magics.model import (
    CaseStatus,
    Configuration,
    Status,
    Sweep,
    shape_text,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Block, Details, Document, Line, Table
from triton_magics.rendering.numbers import (
    MISSING,
    bytes_text,
    count_text,
    duration_text,
    list_text,
    percent_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.badges import badge_lines
from triton_magics.rendering.views.faults import error_view, message_view
from triton_magics.rendering.views.words import (
    CASE_WORDS,
    EXPLANATIONS,
    REMEDIES,
    VERDICTS,
    join_parts,
    next_line,
    on_version,
    output_details,
    subject,
)

TOP = 10
_PLURAL = {"does not compile": "do not compile", "compiles": "compile"}


def sweep_view(value: Sweep, phrase: Phrase) -> Document:
    """Return the best configuration, the table, the failures, the next step."""
    head = sweep_line(value)
    rest = value.configurations[TOP:] if len(value.configurations) > TOP else ()
    every = sweep_details(value) if rest else None
    return (
        head,
        *message_view(value.message, shown_above=head.text),
        *((_table(value, TOP),) if value.configurations else ()),
        *_notes(value),
        *badge_lines(value.badges),
        _footer(value),
        *((every,) if every else ()),
        *_failures(value),
        *output_details(value.output),
        next_line(_next(value, phrase)),
    )


def sweep_details(value: Sweep) -> Details:
    """Return every configuration, folded."""
    return Details("every configuration", (_table(value, None),))


def sweep_line(value: Sweep) -> Line:
    """Return `✓ BEST  softmax v2: BLOCK_SIZE=512 takes 29.8 us, 1.42x as fast as ...`."""
    name = subject(value.op, value.version)
    if value.status is not Status.PASSED and not value.timed:
        status, word = VERDICTS[value.status]
        right = [c for c in value.configurations if c.status is CaseStatus.PASSED]
        if value.status is Status.FAILED and right:
            why = value.message or "no run was valid"
            return Line(
                f"{name}: {len(right)} are right, none was timed: {why}", "bad", "NOT TIMED"
            )
        if value.status is Status.FAILED:
            return Line(f"{name}: no configuration is right", status, "NONE RIGHT")
        reason = value.message or EXPLANATIONS[value.status]
        return Line(f"{name}: {reason}", status, word)
    if value.clock is None:
        fine = [c for c in value.configurations if c.kernel and not c.error]
        n = count_text(len(value.configurations), "configuration")
        text = f"{name}: {len(fine)} of {n} compile for {value.target}; no GPU here, so none was "
        return Line(f"{text}checked or timed", "info", "COMPILED")
    return Line(join_parts((finding(value), _conditions(value))), "good", "BEST")


def finding(value: Sweep) -> str:
    """Return `softmax v2: BLOCK_SIZE=512 num_warps=8 takes 29.8 us, 1.42x as fast as torch`."""
    name, best = subject(value.op, value.version), value.best
    if best is None or best.timing is None:
        compiled = sum(1 for c in value.configurations if c.kernel)
        if compiled and value.target:
            total = count_text(len(value.configurations), "configuration")
            return f"{name}: {compiled} of {total} compiled for {value.target}, none timed"
        return f"{name}: nothing was timed"
    text = f"{name}: {best.label} takes {time_text(best.timing.mean_us)}"
    current = value.written_configuration
    if current and current.timing and current is not best:
        ratio = current.timing.mean_us / best.timing.mean_us
        text += f", {ratio_text(ratio)} as fast as the current settings ({current.label})"
    elif current is best:
        text += ", the current settings"
    speedup = value.speedup(best)
    return text + (f", {ratio_text(speedup)} as fast as torch" if speedup else "")


def _conditions(value: Sweep) -> str:
    shape = shape_text(value.shape)
    size = value.size if value.size == shape else f"{value.size} {shape}"
    device = value.environment.device if value.environment else None
    cache = "cold L2" if value.cold else "hot L2"
    return ", ".join(p for p in (size, device, value.dtype, cache, "net GPU time") if p)


# ------------------------------------------------------------------------------------- table


def _table(value: Sweep, most: int | None) -> Table:
    """Return the fastest first, then the ones without a time; all if `most` is None."""
    rest = [c for c in value.configurations if c not in value.timed]
    shown = (*value.timed, *rest)[:most]
    timed = bool(value.timed)
    names = tuple(value.knobs)
    more = ("time", "of best", "torch") if timed else ()
    header = (*names, *more, "regs", "spilled", "shared", "occupancy", "verdict")
    rows = tuple(_row(value, c, names, timed=timed) for c in shown)
    cut = len(value.configurations) - len(shown)
    caption = "configurations, fastest first" if timed else "configurations"
    if cut:
        caption += f"; {cut} more below"
    return Table(caption, header, rows, "r" * (len(header) - 1) + "l")


def _row(value: Sweep, c: Configuration, names: tuple[str, ...], *, timed: bool) -> tuple[str, ...]:
    return (
        *(str(c.settings.get(name, MISSING)) for name in names),
        *(_times(value, c) if timed else ()),
        *_static(c),
        _standing(value, c) or verdict_text(value, c),
    )


def _standing(value: Sweep, c: Configuration) -> str | None:
    """Return `the best`, or the verdict against it; None without a time."""
    if c is value.best:
        return "the best"
    return c.comparison.verdict if c.comparison and c in value.timed else None


def _times(value: Sweep, c: Configuration) -> tuple[str, ...]:
    if not c.timing or c not in value.timed:
        return (MISSING,) * 3
    best = value.best
    assert best is not None
    assert best.timing is not None
    share = best.timing.mean_us / c.timing.mean_us
    torch = ratio_text(value.speedup(c))
    return time_text(c.timing.mean_us), percent_text(100 * share), torch


def _static(c: Configuration) -> tuple[str, ...]:
    k = c.kernel
    if k is None:
        return (MISSING,) * 4
    return (
        MISSING if k.registers is None else str(k.registers),
        MISSING if k.spill_bytes is None else bytes_text(k.spill_bytes),
        MISSING if k.shared_bytes is None else bytes_text(k.shared_bytes),
        MISSING if k.occupancy_pct is None else percent_text(k.occupancy_pct),
    )


def verdict_text(value: Sweep, c: Configuration) -> str:
    """Return `right`, `wrong values`, `does not compile`, `not compiled`, `not reached`."""
    if not c.is_reached:
        return "not reached"
    if value.clock is None and c.status is CaseStatus.NOT_RUN:
        if c.kernel is None:
            return "not compiled"
        return "compiles" if c.can_launch else "will not launch"
    return CASE_WORDS[c.status]


# ------------------------------------------------------------------------------------- notes


def _notes(value: Sweep) -> Document:
    plan = (
        (Line(f"the best passed the full plan, {count_text(value.best_cases, 'case')}", "good"),)
        if value.best_cases and value.best
        else ()
    )
    return (
        *plan, *_alike(value), *(Line(condition, "info") for condition in value.conditions)
    )  # fmt: skip


def _alike(value: Sweep) -> Document:
    """Return the configurations with the same or an undecided time against the best."""
    same = [c for c in value.timed if c.comparison and c.comparison.verdict == "same"]
    open_ones = [c for c in value.timed if c.comparison and c.comparison.verdict == "undecided"]
    lines = []
    if same:
        lines.append(Line(f"as fast as the best: {list_text([c.label for c in same], most=4)}"))
    if open_ones:
        names = list_text([c.label for c in open_ones], most=4)
        lines.append(Line(f"undecided against the best in these rounds: {names}"))
    return tuple(lines)


def _failures(value: Sweep) -> Document:
    """Return the reasons of the configurations without a time, each reason once."""
    failed = [c for c in value.configurations if c.status.failed or (c.reason and not c.timing)]
    if not failed:
        return ()
    reasons: dict[str, list[str]] = {}
    for c in failed:
        reasons.setdefault(c.reason or CASE_WORDS[c.status], []).append(c.label)
    items: list[Block] = [
        Line(f"{list_text(labels, most=4)}: {reason}", "info") for reason, labels in reasons.items()
    ]
    first = next((c.error for c in failed if c.error), None)
    where = error_view(first) if first else ()
    return (Details(f"without a time: {len(failed)}", (*items, *where)),)


def _footer(value: Sweep) -> Line:
    steps = ", ".join(f"{name} {duration_text(s)}" for name, s in value.steps_s.items())
    whole = None if value.duration_s is None else duration_text(value.duration_s)
    return Line(
        join_parts(
            (
                f"{count_text(len(value.configurations), 'configuration')}: {_counts(value)}",
                f"{whole} ({steps})" if whole and steps else whole,
                f"seed {value.seed}",
                value.environment.line if value.environment and value.clock else None,
            )
        ),
        "info",
    )


def _counts(value: Sweep) -> str:
    """Return `8 right, 3 do not compile, 1 wrong values`."""
    words = Counter(verdict_text(value, c) for c in value.configurations)
    return ", ".join(f"{n} {_PLURAL.get(w, w) if n > 1 else w}" for w, n in words.most_common())


def _next(value: Sweep, phrase: Phrase) -> str:
    best = value.best
    validate = step_code(on_version("validate", value.op, value.written or value.version), phrase)
    if value.written and value.best_cases:
        return step_code(NextStep("bench", {"op": value.op}), phrase)
    if value.written:
        return f"{validate}, the full plan"
    if best is None:
        if value.clock is None and value.status is Status.PASSED:
            return f"{validate}; timing needs a GPU"
        return REMEDIES.get(value.status, "try other values")
    if best is value.written_configuration:
        bench = step_code(NextStep("bench", {"op": value.op}), phrase)
        return f"{bench}; the version already has the best of these settings"
    knobs = {name: (setting,) for name, setting in best.settings.items()}
    again = on_version("sweep", value.op, value.version, knobs=knobs, size=value.size, write=True)
    return f"{step_code(again, phrase)} saves it as a version"


__all__ = ["finding", "sweep_line", "sweep_view", "verdict_text"]
