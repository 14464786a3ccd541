"""The view of a profile: what limits a version, and the counters that show it."""

from __future__ import annotations

from triton_magics.model import (
    METRICS,
    STALLS,
    Limit,
    LimitKind,
    Metric,
    Profile,
    ProfiledKernel,
    SourceLine,
    Status,
    raw_stall,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Code, Details, Document, Line, Table, code
from triton_magics.rendering.numbers import (
    MISSING,
    bytes_text,
    count_text,
    number_text,
    percent_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.faults import error_view, reason_text, traceback_view
from triton_magics.rendering.views.words import (
    REMEDIES,
    VERDICTS,
    join_parts,
    next_line,
    on_version,
    output_details,
    subject,
)

CONFLICT_SHARE = 0.2
MAX_LINES = 5
MIN_SHARE = 0.01
HEAT_CHARS = 12
_LEADS: dict[LimitKind, str] = {
    "memory": "MEMORY-BOUND",
    "compute": "COMPUTE-BOUND",
    "latency": "LATENCY-BOUND",
    "occupancy": "LOW OCCUPANCY",
    "launch": "LAUNCH-BOUND",
}
_REASONS: dict[str, str] = {
    "dram_pct": "device memory works at {} of its peak",
    "l2_pct": "the L2 cache works at {} of its peak",
    "l1_pct": "the L1 cache works at {} of its peak",
    "memory_pct": "the memory system works at {} of its peak",
    "sm_pct": "the SMs work at {} of their peak",
    "duration_us": "it takes {}, about as long as a launch",
    "occupancy_pct": "{} of the warps that fit are active",
    "load_used_pct": "{} of the loaded bytes are used, the rest is moved for nothing",
    "store_used_pct": "{} of the stored bytes are used, the rest is moved for nothing",
    "local_bytes": "registers spill: {} move to memory and back",
    "conflict_share": "{} of the passes over shared memory are bank conflicts",
    "issue_pct": "an instruction is issued in {} of the cycles; warps wait",
}
_SHOWN = (
    "duration_us", "dram_pct", "l2_pct", "l1_pct", "sm_pct", "tensor_pct", "issue_pct",
    "occupancy_pct", "theoretical_occupancy_pct", "registers", "load_sectors_per_request",
    "load_used_pct", "store_sectors_per_request", "store_used_pct",
)  # fmt: skip
_METRIC_OF = {metric.field: metric for metric in METRICS}


def profile_view(value: Profile, phrase: Phrase) -> Document:
    """Return the limit in one sentence, then a table of figures, and every counter folded."""
    if not value.passed or value.main_kernel is None:
        return _no_profile(value, phrase)
    return (
        _limit_line(value),
        *_comparison(value),
        *_stall_line(value.main_kernel),
        *_warnings(value.main_kernel),
        *_lines_table(value.main_kernel),
        *_kernels_table(value),
        _figures_table(value),
        _source_line(value),
        Details("all counters", (_counters_table(value.main_kernel),)),
        *output_details(value.output),
        next_line(_next_step(value, phrase)),
    )


def _no_profile(value: Profile, phrase: Phrase) -> Document:
    status, lead = VERDICTS[value.status]
    if value.status is Status.FAILED:
        status, lead = "bad", "NOT PROFILED"
    reason = reason_text(value.status, value.message, value.error)
    head = Line(f"{subject(value.op, value.version)}: {reason}", status, lead)
    verb = "validate" if value.status.failed else "inspect"
    step = step_code(on_version(verb, value.op, value.version), phrase)
    shows = "checks it" if verb == "validate" else "shows static figures of its code"
    remedy = REMEDIES[value.status] if value.status is Status.INTERRUPTED else f"{step} {shows}"
    return (
        head,
        *(error_view(value.error, shown_above=head.text) if value.error else ()),
        *traceback_view(value.error),
        *output_details(value.output),
        next_line(remedy),
    )


def _limit_line(value: Profile) -> Line:
    name = f"{subject(value.op, value.version)} at {value.case.label}"
    if value.limit is None:
        return Line(f"{name}: the figures that show its limit are missing", "warn", "PROFILED")
    return Line(f"{name}: {_reason_text(value.limit)}", "info", _LEADS[value.limit.kind])


def _reason_text(limit: Limit) -> str:
    if limit.field == "conflict_share":
        figure = percent_text(100 * limit.value)
    elif limit.field == "local_bytes":
        figure = bytes_text(int(limit.value))
    else:
        figure = _text(_METRIC_OF[limit.field], limit.value)
    return _REASONS[limit.field].format(figure)


def _comparison(value: Profile) -> Document:
    other = value.against
    if other is None:
        return ()
    name = subject(other.op, other.version)
    if not other.passed:
        return (Line(f"{name}: {reason_text(other.status, other.message, other.error)}", "warn"),)
    times = f"{time_text(value.duration_us)}, {name} {time_text(other.duration_us)}"
    limit = f"{name} is {_LEADS[other.limit.kind].lower()}" if other.limit else None
    return (Line(join_parts((f"time under the profiler {times}", limit)), "info"),)


def _stall_line(kernel: ProfiledKernel) -> Document:
    parts = [
        f"{STALLS.get(reason, reason)} {percent_text(100 * part)}"
        for reason, part in kernel.top_stalls
    ]
    return (Line(f"a warp waits for {', '.join(parts)}", "info"),) if parts else ()


def _warnings(kernel: ProfiledKernel) -> Document:
    """Return notes on spilled registers and bank conflicts."""
    lines = []
    if kernel.local_bytes:
        size = bytes_text(int(kernel.local_bytes))
        lines.append(f"registers spill, {size} of traffic: use a smaller block or more warps")
    if (kernel.conflict_share or 0.0) > CONFLICT_SHARE:
        share = percent_text(100 * (kernel.conflict_share or 0.0))
        lines.append(f"bank conflicts take {share} of the passes over shared memory")
    return tuple(Line(text, "warn") for text in lines)


def _lines_table(kernel: ProfiledKernel) -> Document:
    """Return the lines where most warps waited; the whole kernel with their shares folded."""
    if not kernel.lines:
        return (Line(kernel.lines_missing, "info"),) if kernel.lines_missing else ()
    shown = [line for line in kernel.lines if line.share >= MIN_SHARE][:MAX_LINES]
    has_sectors = any(line.sectors_ratio for line in shown)
    rows = tuple(
        (
            _place_text(line),
            percent_text(100 * line.share),
            _stall_text(line),
            *((_ratio_text(line),) if has_sectors else ()),
            code(line.code.strip()) if line.code else MISSING,
        )
        for line in shown
    )
    header = ("line", "samples", "waits for", *(("sectors",) if has_sectors else ()), "code")
    table = Table("lines where warps were sampled", header, rows, f"lrl{'r' * has_sectors}l")
    return (table, *_heat(kernel))


def _place_text(line: SourceLine) -> str:
    if line.library:
        return line.library
    return f"cell {line.cell_line}" if line.cell_line else f"file {line.file_line}"


def _stall_text(line: SourceLine) -> str:
    if line.stall is None or line.stall_share is None:
        return MISSING
    return f"{STALLS.get(line.stall, line.stall)} {percent_text(100 * line.stall_share)}"


def _ratio_text(line: SourceLine) -> str:
    """Return how many times the sectors of aligned neighbouring accesses the line moves."""
    return MISSING if line.sectors_ratio is None else f"{line.sectors_ratio:.1f}x"


def _heat(kernel: ProfiledKernel) -> Document:
    """Return the sampled lines of the version in their order, with a bar for each share."""
    own = sorted((n.file_line, n) for n in kernel.lines if n.file_line is not None)
    if not own:
        return ()
    peak = max(line.share for _, line in own)
    bars = [
        f"{percent_text(100 * line.share):>6} {_bar(line.share / peak)} "
        f"{line.cell_line or number:>4}  {line.code}"
        for number, line in own
    ]
    library = sum(line.share for line in kernel.lines if line.library)
    if library:
        bars.append(f"{percent_text(100 * library):>6} in libraries")
    return (Details("samples beside the code", (Code("\n".join(bars), language="text"),)),)


def _bar(part: float) -> str:
    return f"{'█' * round(HEAT_CHARS * part):<{HEAT_CHARS}}"


def _kernels_table(value: Profile) -> Document:
    if len(value.kernels) == 1:
        return ()
    rows = tuple(
        (
            kernel.name,
            time_text(kernel.duration_us),
            MISSING if kernel.share is None else percent_text(100 * kernel.share),
            kernel.limit.kind if kernel.limit else MISSING,
        )
        for kernel in value.kernels
    )
    caption = f"{count_text(len(rows), 'kernel')} of the call, in order"
    return (Table(caption, ("kernel", "time", "share", "limit"), rows, "lrrl"),)


def _figures_table(value: Profile) -> Table:
    """Return the main kernel's figures, beside those of the version to compare with."""
    sides = [value, value.against] if value.against and value.against.kernels else [value]
    kernels = [side.main_kernel for side in sides if side.main_kernel]
    rows = [
        (_METRIC_OF[field].label, *(_figure_text(kernel, field) for kernel in kernels))
        for field in _SHOWN
    ]
    conflicts = ("bank conflicts", *(_share_or_missing(k.conflict_share) for k in kernels))
    spills = ("spills", *(_bytes_or_missing(kernel.local_bytes) for kernel in kernels))
    header = (
        "figure",
        *(f"{subject(s.op, s.version)}: {k.name}" for s, k in zip(sides, kernels, strict=True)),
    )
    caption = "counters of the call's longest kernel, cold caches"
    return Table(caption, header, (*rows, conflicts, spills))


def _figure_text(kernel: ProfiledKernel, field: str) -> str:
    figure = getattr(kernel, field)
    return MISSING if figure is None else _text(_METRIC_OF[field], figure)


def _text(metric: Metric, figure: float) -> str:
    if metric.field.endswith("_us"):
        return time_text(figure)
    if metric.field.endswith("_pct"):
        return percent_text(figure)
    if metric.field.endswith("_bytes"):
        return bytes_text(int(figure))
    return number_text(figure) if figure < 1e4 else f"{figure:,.0f}"


def _bytes_or_missing(n_bytes: float | None) -> str:
    if n_bytes is None:
        return MISSING
    return bytes_text(int(n_bytes)) if n_bytes else "none"


def _share_or_missing(share: float | None) -> str:
    return MISSING if share is None else percent_text(100 * share)


def _source_line(value: Profile) -> Line:
    missing = value.main_kernel.missing if value.main_kernel else {}
    parts = (
        value.tool,
        "each counter from a replay of the kernel, clocks not fixed; not a benchmark",
        f"{count_text(len(missing), 'counter')} missing" if missing else None,
        f"report: {code(value.report_path)}" if value.report_path else None,
    )
    return Line(join_parts(parts), "info")


def _counters_table(kernel: ProfiledKernel) -> Table:
    rows = [(metric.raw, _counter_text(kernel, metric)) for metric in METRICS]
    rows += [
        (
            raw_stall(reason),
            number_text(kernel.stalls[reason]) if reason in kernel.stalls else MISSING,
        )
        for reason in STALLS
    ]
    return Table(f"{kernel.name}: names of Nsight Compute", ("counter", "value"), tuple(rows), "ll")


def _counter_text(kernel: ProfiledKernel, metric: Metric) -> str:
    if metric.field in kernel.missing:
        return f"{MISSING} {kernel.missing[metric.field]}"
    return _figure_text(kernel, metric.field)


def _next_step(value: Profile, phrase: Phrase) -> str:
    if value.limit is None:
        return step_code(on_version("inspect", value.op, value.version), phrase)
    words = value.limit.technique.replace("_", " ").split()
    step = NextStep("ref", {"words": tuple(words)})
    return f"{step_code(step, phrase)} shows a technique for it"


__all__ = ["profile_view"]
