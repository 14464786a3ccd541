"""Tables of a profile: source lines, kernels, figures with their origin, raw counters."""

from __future__ import annotations

from collections.abc import Iterator

from triton_magics import roofline
from triton_magics.model import (
    METRICS,
    STALLS,
    CategoryFigure,
    Metric,
    Profile,
    ProfiledKernel,
    Rung,
    SourceLine,
    categories_of,
)
from triton_magics.rendering.blocks import Code, Details, Document, Line, Table, code
from triton_magics.rendering.numbers import (
    MISSING,
    bytes_text,
    count_text,
    number_text,
    percent_text,
    rate_text,
    time_text,
)
from triton_magics.rendering.views.words import subject

MAX_LINES = 5
MIN_SHARE = 0.01
HEAT_CHARS = 12
MIN_CHANGE = 0.1  # of the larger figure, or of 100 %
RUNGS: dict[Rung, str] = {"counters": "counter", "activity": "CUPTI", "static": "compiled code"}
_CAPTIONS: dict[Rung, str] = {
    "counters": "counters of the call's longest kernel, cold caches",
    "activity": "the call's longest kernel, cold caches",
    "static": "the compiled kernel",
}
_SHOWN = (
    "duration_us", "dram_pct", "l2_pct", "l1_pct", "sm_pct", "tensor_pct", "issue_pct",
    "occupancy_pct", "theoretical_occupancy_pct", "waves", "registers",
    "load_sectors_per_request", "load_used_pct", "store_sectors_per_request", "store_used_pct",
)  # fmt: skip
METRIC_OF = {metric.field: metric for metric in METRICS}


def lines_table(kernel: ProfiledKernel) -> Document:
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


def kernels_table(value: Profile) -> Document:
    """Return every kernel of the call with its share of the time; nothing for a single one."""
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


def figures_table(value: Profile) -> Table:
    """Return the main kernel's figures, each with its origin, beside those of the other version."""
    sides = [value, value.against] if value.against and value.against.kernels else [value]
    kernels = [side.main_kernel for side in sides if side.main_kernel]
    rows = [
        (
            METRIC_OF[field].label,
            *(_figure_text(kernel, field) for kernel in kernels),
            RUNGS[value.rung_of(kernels[0], field)],
        )
        for field in _SHOWN
        if any(getattr(kernel, field) is not None for kernel in kernels)
    ]
    rows += [row for row in _computed_rows(value, kernels) if set(row[1:-1]) != {MISSING}]
    header = (
        "figure",
        *(f"{subject(s.op, s.version)}: {k.name}" for s, k in zip(sides, kernels, strict=True)),
        "from",
    )
    return Table(_CAPTIONS[value.rung], header, tuple(rows), f"l{'r' * len(kernels)}l")


def _computed_rows(value: Profile, kernels: list[ProfiledKernel]) -> Iterator[tuple[str, ...]]:
    """Yield the figures that are computed from several."""
    origin = RUNGS[value.rung]
    copy_gbps = value.roofline.copy_gbps if value.roofline else None
    yield "device memory rate", *(_rate_text(k.dram_gbps, copy_gbps) for k in kernels), origin
    yield "bank conflicts", *(_share_or_missing(k.conflict_share) for k in kernels), origin
    if value.rung == "static":
        yield "spills a thread", *(_bytes_or_missing(k.spill_bytes) for k in kernels), origin
    else:
        yield "spills", *(_bytes_or_missing(k.local_bytes) for k in kernels), origin
    yield "shared memory", *(_bytes_or_missing(k.shared_bytes) for k in kernels), origin


def _rate_text(gbps: float | None, copy_gbps: float | None) -> str:
    """Return `3,433 GB/s (80 % of a copy)`."""
    if gbps is None:
        return MISSING
    share = roofline.share_pct(gbps, copy_gbps)
    return rate_text(gbps) + ("" if share is None else f" ({percent_text(share)} of a copy)")


def change_text(before: ProfiledKernel, after: ProfiledKernel) -> str | None:
    """Return the three figures that differ most, `sectors a load 32 to 16`; None if none does."""
    changes = []
    for field in _SHOWN[1:]:
        old, new = getattr(before, field), getattr(after, field)
        if old is not None and new is not None and old != new:
            scale = 100.0 if field.endswith("_pct") else max(abs(old), abs(new))
            texts = (figure_text(METRIC_OF[field], figure) for figure in (old, new))
            changes.append((abs(new - old) / scale, METRIC_OF[field].label, *texts))
    largest = sorted((c for c in changes if c[0] >= MIN_CHANGE), reverse=True)[:3]
    return ", ".join(f"{label} {old} to {new}" for _, label, old, new in largest) or None


def _figure_text(kernel: ProfiledKernel, field: str) -> str:
    figure = getattr(kernel, field)
    return MISSING if figure is None else figure_text(METRIC_OF[field], figure)


def figure_text(metric: Metric, figure: float) -> str:
    """Return a figure with its unit."""
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


def counters_table(kernel: ProfiledKernel) -> Table:
    """Return every counter in its category, with the name and unit of its figure."""
    rows = tuple(
        (category.replace("_", " "), name, figure.raw, _counter_text(name, figure))
        for category, figures in categories_of(kernel).items()
        for name, figure in figures.items()
    )
    header = ("category", "figure", "name in Nsight Compute", "value")
    return Table(f"{kernel.name}: all counters", header, rows, "llll")


def _counter_text(name: str, figure: CategoryFigure) -> str:
    if figure.value is None:
        return f"{MISSING} {figure.missing or ''}".strip()
    metric = METRIC_OF.get(name)
    return figure_text(metric, figure.value) if metric else number_text(figure.value)


__all__ = [
    "METRIC_OF",
    "RUNGS",
    "change_text",
    "counters_table",
    "figure_text",
    "figures_table",
    "kernels_table",
    "lines_table",
]
