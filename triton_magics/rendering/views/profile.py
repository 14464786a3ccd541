"""The view of a profile: what limits a version, and the counters that show it."""

from __future__ import annotations

from triton_magics import roofline
from triton_magics.model import STALLS, Limit, LimitKind, Profile, ProfiledKernel, Status
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import Details, Document, Line, code
from triton_magics.rendering.numbers import (
    bytes_text,
    count_text,
    flops_text,
    percent_text,
    rate_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.faults import error_view, reason_text, traceback_view
from triton_magics.rendering.views.profile_tables import (
    METRIC_OF,
    change_text,
    counters_table,
    figure_text,
    figures_table,
    kernels_table,
    lines_table,
)
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
_CLOCKS = {
    "counters": "under the profiler",
    "activity": "by CUPTI, cold caches",
    "benchmark": "in the newest benchmark",
}


def profile_view(value: Profile, phrase: Phrase) -> Document:
    """Return the limit in one sentence, then a table of figures, and every counter folded."""
    if value.main_kernel is None:
        return _no_profile(value, phrase)
    if value.rung != "counters":
        return _lower_rung(value, phrase)
    return (
        _limit_line(value),
        *roofline_line(value),
        *_comparison(value),
        *_stall_line(value.main_kernel),
        *_warnings(value.main_kernel),
        *lines_table(value.main_kernel),
        *kernels_table(value),
        figures_table(value),
        _source_line(value),
        Details("all counters", (counters_table(value.main_kernel),)),
        *output_details(value.output),
        next_line(_next_step(value, phrase)),
    )


def _lower_rung(value: Profile, phrase: Phrase) -> Document:
    """Return the figures that can be had without counters, and why there are none."""
    return (
        profile_headline(value),
        *roofline_line(value),
        *_comparison(value),
        *kernels_table(value),
        figures_table(value),
        _source_line(value),
        *output_details(value.output),
        next_line(_next_step(value, phrase)),
    )


def profile_headline(value: Profile) -> Line:
    """Return the first line of a profile: what limits the version, or what is known of it."""
    if value.main_kernel is None or value.rung == "counters":
        return _limit_line(value)
    name = f"{subject(value.op, value.version)} at {value.case.label}"
    if value.rung == "static":
        lead = "STATIC FIGURES" if value.passed else VERDICTS[value.status][1]
        return Line(f"{name}: {value.rung_reason}; figures of its compiled code", "warn", lead)
    call = value.roofline
    bound = f", {call.bound}-bound by its least work" if call and call.bound else ""
    text = f"{name}: {time_text(value.duration_us)} on the GPU{bound}"
    why = f"; no counters: {value.rung_reason}" if value.rung_reason else "; counters not read"
    return Line(f"{text}{why}", "info", "RECORDED")


def roofline_line(value: Profile) -> tuple[Line, ...]:
    """Return the time beside that at measured rates, if it is known."""
    call = value.roofline
    if call is None or call.limit_us is None or call.time_us is None or not call.share_pct:
        return ()
    if call.bound == "memory":
        ceiling = f"{rate_text(call.copy_gbps or 0.0)}, the measured rate of a copy"
    else:
        peak = flops_text(call.peak_tflops or 0.0)
        ceiling = f"{peak}, the measured rate of torch's matmul in {value.case.dtype}"
    measured = f"{time_text(call.time_us)} {_CLOCKS[call.clock]}"
    if call.share_pct < roofline.FASTER_PCT:
        share = f"{percent_text(call.share_pct)} of it is reached ({measured})"
    else:
        ratio = ratio_text(call.share_pct / 100)
        share = f"this call is faster, {measured} ({ratio}): the rate is no limit of the hardware"
    return (Line(f"roofline: {time_text(call.limit_us)} at {ceiling}; {share}", "info"),)


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
        figure = figure_text(METRIC_OF[limit.field], limit.value)
    return _REASONS[limit.field].format(figure)


def _comparison(value: Profile) -> Document:
    other = value.against
    if other is None:
        return ()
    name = subject(other.op, other.version)
    if not other.kernels:
        return (Line(f"{name}: {reason_text(other.status, other.message, other.error)}", "warn"),)
    times = f"{time_text(value.duration_us)}, {name} {time_text(other.duration_us)}"
    limit = f"{name} is {_LEADS[other.limit.kind].lower()}" if other.limit else None
    lines = [Line(join_parts((f"time under the profiler {times}", limit)), "info")]
    if other.main_kernel and value.main_kernel:
        changed = change_text(other.main_kernel, value.main_kernel)
        lines.append(Line(f"changed since {name}: {changed or 'no figure by 10 %'}", "info"))
    return tuple(lines)


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


def _source_line(value: Profile) -> Line:
    missing = value.main_kernel.missing if value.main_kernel else {}
    replays = "each counter from a replay of the kernel, clocks not fixed; not a benchmark"
    parts = (
        value.tool,
        replays if value.rung == "counters" else None,
        "occupancy and waves computed" if value.rung == "activity" else None,
        f"{count_text(len(missing), 'counter')} missing" if missing else None,
        f"report: {code(value.report_path)}" if value.report_path else None,
    )
    return Line(join_parts(parts), "info")


def _next_step(value: Profile, phrase: Phrase) -> str:
    if value.rung == "static":
        step = NextStep("doctor", {})
        return f"{step_code(step, phrase)} shows what a profile needs"
    if value.limit is None:
        return step_code(on_version("inspect", value.op, value.version), phrase)
    words = value.limit.technique.replace("_", " ").split()
    step = NextStep("ref", {"words": tuple(words)})
    return f"{step_code(step, phrase)} shows a technique for it"


__all__ = ["profile_headline", "profile_view", "roofline_line"]
