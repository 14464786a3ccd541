"""The parts of a development log, each a document of its own: a page and a notebook share them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from triton_magics.model import (
    Benchmark,
    KernelSource,
    OpFacts,
    Status,
    Validation,
    shape_text,
    short,
)
from triton_magics.report.blocks import (
    Block,
    Code,
    Details,
    Document,
    Heading,
    Items,
    Line,
    Table,
    Text,
    code,
)
from triton_magics.report.log_correctness import verdict_cell
from triton_magics.report.log_input import LogInput, VersionLog
from triton_magics.report.numbers import MISSING, count_text, ratio_text, time_text
from triton_magics.report.views import headline
from triton_magics.report.views.benchmark import finding, table_caption, void
from triton_magics.report.views.benchmark import summary as benchmark_summary
from triton_magics.report.views.failure import mismatch_text
from triton_magics.report.views.state import techniques_table
from triton_magics.report.views.sweep import finding as sweep_finding
from triton_magics.report.views.sweep import sweep_details
from triton_magics.report.views.timing import comparison_table, notes, statistics_table
from triton_magics.report.views.words import (
    badge_lines,
    compiled_text,
    entry_text,
    joined,
    step_text,
)

_BLOCK = re.compile(r"\b(BLOCK(?:_[A-Z]+)*)\s*=\s*(\d+)\b")


KERNELS = Heading("Phase 2: kernels", 2)
SPEED = Heading("Phase 3: benchmark results", 2)


def title(facts: OpFacts) -> str:
    """`torch.softmax Triton Kernel development log`."""
    call = facts.torch_equivalent.split("(")[0].strip()
    name = call if re.fullmatch(r"torch(\.\w+)+", call) else facts.name
    return f"{name} Triton Kernel development log"


# ----------------------------------------------------------------------------------- summary


def summary(given: LogInput) -> Document:
    """The choice, what it rests on, every version at a glance."""
    found = (Text(finding(given.benchmark)),) if given.benchmark else ()
    table = (_glance_table(given),) if given.versions else ()
    return (Heading(title(given.facts), 1), *choice(given), *found, *table)


def choice(given: LogInput) -> Document:
    """The version to ship with its figures, or what is still missing."""
    best, state = given.best, given.state
    if not best:
        counted = sum(v.counted for v in state.versions)
        written = f"{counted} of {state.min_writes} versions written"
        return (Line(f"{given.op}: state {state.state}, {written}", "warn", "NOT FINISHED"),)
    figures = joined(
        (
            f"{ratio_text(best.speedup)} as fast as torch" if best.speedup else None,
            f"final {time_text(best.final_us)}" if best.final_us is not None else None,
        )
    )
    name = f"{given.op} {best.source.version}"
    text = f"{name}: {figures}" if figures else name
    if best.provisional:
        return (Line(joined((text, best.provisional)), "warn", "PROVISIONAL"),)
    return (Line(text, "good", "CHOSEN"),)


def _glance_table(given: LogInput) -> Table:
    header = ("Version", "technique", "verdict", "final", "speedup", "attempts")
    rows = tuple(_glance_row(given, v) for v in given.versions)
    return Table("versions at a glance", header, rows, "lllrrr")


def _glance_row(given: LogInput, version: VersionLog) -> tuple[str, ...]:
    timed = given.timed_in(version)
    final = timed.final_us(version.version) if timed else None
    label = " (interpreter)" if timed and timed.clock == "interpreter" else ""
    return (
        version.version,
        version.technique or MISSING,
        verdict_cell(version),
        time_text(final) + (label if final is not None else ""),
        ratio_text(timed.speedup(version.version)) if timed else MISSING,
        str(len(version.attempts)),
    )


# ----------------------------------------------------------------------------------- phase 1


def research(given: LogInput) -> Document:
    """Phase 1: what is computed, on what, at what cost, and which techniques fit."""
    facts = given.facts
    sizes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in facts.sizes.items())
    items = (
        f"Operation: {code(facts.torch_equivalent)}",
        f"Definition: {facts.formula}",
        f"Interface: {code(facts.signature)}",
        f"Input: {facts.input_shapes}; output: {facts.output_shape}",
        f"Sizes: {sizes}",
        f"Dtypes: {', '.join(facts.dtypes)}; accumulate in {facts.accumulate}",
        f"Cost: {facts.complexity}",
        f"Memory: {facts.memory_pattern}; {facts.bound}-bound",
    )
    techniques = (techniques_table(given.techniques),) if given.techniques else ()
    tips = (Details("tips", (Items(facts.tips),)),) if facts.tips else ()
    return (
        Heading("Phase 1: research and analysis", 2),
        Text(facts.description),
        Items(items),
        *techniques,
        *tips,
    )


# ----------------------------------------------------------------------------------- phase 2


def version_intro(given: LogInput, version: VersionLog) -> Document:
    """A version's heading, its technique, what changed since the one before."""
    technique = f" — {version.technique}" if version.technique else ""
    lines = (
        Line(f"{code(version.source.path)} · entry {entry_text(version.source)}"),
        *_block_line(version.source),
        *_change_line(given, version),
    )
    return (Heading(f"{version.version}{technique}", 3), *lines)


def _block_line(source: KernelSource) -> Iterator[Line]:
    sizes = dict(_BLOCK.findall(source.source))
    if sizes:
        named = ", ".join(code(f"{name} = {value}") for name, value in sorted(sizes.items()))
        yield Line(f"block sizes: {named}")


def _change_line(given: LogInput, version: VersionLog) -> Iterator[Line]:
    at = given.versions.index(version)
    if at == 0:
        return
    before = given.versions[at - 1]
    added, removed = changed_lines(before.source.source, version.source.source)
    yield Line(f"against {short(before.version)}: {count_text(added, 'line')} in, {removed:,} out")


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """How many lines came in, and how many went out."""
    diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return sum(d.startswith("+") for d in diff), sum(d.startswith("-") for d in diff)


def attempt_intro(version: VersionLog, source: KernelSource) -> Document:
    """Why an attempt was replaced, in words."""
    return (Line(f"Attempt {source.attempt} was replaced. {why_replaced(version, source)}"),)


def why_replaced(version: VersionLog, source: KernelSource) -> str:
    """What was wrong with an attempt: its verdict, or that it never got one."""
    verdict, compiled = version.validation(source), version.compilation(source)
    if verdict:
        return joined((headline(verdict), *_causes(verdict)))
    if compiled and compiled.status is not Status.PASSED:
        return headline(compiled)
    return f"{short(version.version)} was written again before this attempt was validated"


def _causes(verdict: Validation) -> Iterator[str]:
    first = next(iter(verdict.failed_cases), None)
    if first and first.mismatch:
        yield mismatch_text(first.mismatch)
        if first.mismatch.cause:
            yield f"likely: {first.mismatch.cause}"
    if verdict.error and verdict.error.hint:
        yield f"hint: {verdict.error.hint}"


def kernels(given: LogInput) -> Document:
    """Phase 2: every version, the attempts that were replaced and why, the code."""
    found: list[Block] = [KERNELS]
    if not given.versions:
        found.append(Line("no version was written yet", "warn"))
    for version in given.versions:
        found += version_intro(given, version)
        for source in version.earlier:
            found += attempt_intro(version, source)
            found.append(Details(f"code of attempt {source.attempt}", (Code(source.source),)))
        found.append(Code(version.source.source))
        found += _compiled(version)
        found += swept(version)
    return tuple(found)


def swept(version: VersionLog) -> Document:
    """What a sweep over the version's settings has shown."""
    if not version.sweep:
        return ()
    return (Line(f"sweep: {sweep_finding(version.sweep)}", "info"), sweep_details(version.sweep))


def _compiled(version: VersionLog) -> Iterator[Line]:
    compiled = version.compilation(version.source)
    if compiled and compiled.status is Status.PASSED:
        yield Line(f"compiled for {compiled_text(compiled)}", "info")


# ----------------------------------------------------------------------------------- phase 3


def speed(given: LogInput) -> Document:
    """Phase 3: the times, without the picture."""
    if not given.benchmarks:
        return (SPEED, Line("nothing was timed yet", "warn"))
    found: list[Block] = []
    for value in given.benchmarks:
        found += benchmark_part(value)
    return (SPEED, *found, *stale_lines(given))


def benchmark_part(value: Benchmark) -> Document:
    """One benchmark: the table in the log's form, what it is worth, the statistics folded."""
    if not value.timings or void(value):
        return (Line(benchmark_summary(value), "warn"),)
    compared = value.comparisons and value.on_gpu
    intervals = (Details("verdicts and intervals", (comparison_table(value),)),) if compared else ()
    statistics = Details("statistics of the runs", (statistics_table(value),))
    return (
        Line(benchmark_summary(value)),
        form_table(value),
        *notes(value),
        *badge_lines(value.badges),
        *intervals,
        statistics,
    )


def form_table(value: Benchmark) -> Table:
    """Kernel, Small, Medium, Large, Final, and on a GPU Speedup; torch last."""
    compared = value.on_gpu and "torch" in value.providers
    rows = [v for v in value.providers if v != "torch"] if compared else list(value.versions)
    rows += ["torch"] if compared else []
    header = ("Kernel", *(s.capitalize() for s in value.sizes), "Final")
    return Table(
        table_caption(value),
        (*header, "Speedup") if compared else header,
        tuple(_form_row(value, provider, compared) for provider in rows),
    )


def _form_row(value: Benchmark, provider: str, compared: bool) -> tuple[str, ...]:
    times = [value.timing(provider, size) for size in value.sizes]
    cells = (*(time_text(t.mean_us if t else None) for t in times),)
    row = (provider, *cells, time_text(value.final_us(provider)))
    speedup = 1.0 if provider == "torch" else value.speedup(provider)
    return (*row, ratio_text(speedup)) if compared else row


def stale_lines(given: LogInput) -> Iterator[Line]:
    """The versions without a time of the code that stands in their file."""
    for version in given.versions:
        if version.benchmark and not given.timed_in(version):
            yield Line(
                f"{version.version} was written again since it was timed: these times are of an "
                "earlier attempt",
                "warn",
            )
        elif not version.benchmark:
            yield Line(f"{version.version} was not timed", "info")


# ----------------------------------------------------------------------------------- phase 4


def selection(given: LogInput) -> Document:
    """Phase 4: the chosen version, why, what is left to gain."""
    head = (Heading("Phase 4: the chosen kernel", 2), *choice(given))
    best = given.best
    if not best:
        return (*head, Line(f"next: {step_text(given.state.next_step)}"))
    means = best.geomean_speedup
    lines = (
        Line(f"why: {best.reason}"),
        Line(f"geometric mean of the sizes: {ratio_text(means)}") if means else None,
        Line(f"{code(best.source.path)} · entry {entry_text(best.source)}"),
        *left_to_gain(given),
    )
    return (*head, *(line for line in lines if line))


def left_to_gain(given: LogInput) -> Iterator[Line]:
    """How far the choice is from the card's limits, and which techniques were not tried."""
    value = given.benchmark
    if value and value.clock == "gpu":
        words = ("launch-bound", "of what this card copies", "FLOP/s")
        for note in notes(value):
            if isinstance(note, Line) and any(word in note.text for word in words):
                yield Line(f"left to gain: {note.text}")
    tried = " ".join(f"{v.technique} {v.version}" for v in given.versions).lower()
    untried = [t.title for t in given.techniques if t.title.lower() not in tried]
    if untried:
        yield Line(f"not named by any version: {', '.join(untried)}", "info")


# --------------------------------------------------------------------------------- afterword


def environment(given: LogInput) -> Document:
    """Where the results were made, what was forced, how to write the log again."""
    env = given.environment
    head = (Heading("Environment", 2),)
    if not env:
        return (*head, Line("nothing was run yet", "warn"), *_notes(given))
    details = (
        f"device: {env.device}"
        + (f", compute capability {env.capability}" if env.capability else ""),
        f"driver {env.driver}, CUDA {env.cuda}" if env.driver else None,
        f"torch {env.torch}, triton {env.triton}, python {env.python}",
        f"precision: {', '.join(env.flags)}" if env.flags else None,
        f"written by {code(given.export_command)}" if given.export_command else None,
    )
    return (*head, Items(tuple(d for d in details if d)), *_notes(given))


def _notes(given: LogInput) -> Iterator[Line]:
    for note in given.notes:
        yield Line(note, "warn")
