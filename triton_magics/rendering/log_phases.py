"""The sections of a development log; the page and the notebook share them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from triton_magics import languages
from triton_magics.errors import UserError
from triton_magics.model import (
    Benchmark,
    KernelSource,
    OpState,
    Status,
    Validation,
    shape_text,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import (
    Block,
    Changes,
    Code,
    Details,
    Document,
    Heading,
    Items,
    Line,
    Markdown,
    Table,
    Text,
    code,
)
from triton_magics.rendering.log_correctness import verdict_cell
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.log_profile import profile_part
from triton_magics.rendering.numbers import MISSING, join_with_and, ratio_text, time_text
from triton_magics.rendering.phrase import step_code
from triton_magics.rendering.views import headline
from triton_magics.rendering.views.badges import badge_lines
from triton_magics.rendering.views.benchmark import finding, is_void, table_caption
from triton_magics.rendering.views.benchmark import summary as benchmark_summary
from triton_magics.rendering.views.causes import cause_text
from triton_magics.rendering.views.failure import mismatch_text
from triton_magics.rendering.views.state import missing_text, techniques_table
from triton_magics.rendering.views.sweep import finding as sweep_finding
from triton_magics.rendering.views.sweep import sweep_details
from triton_magics.rendering.views.timing import comparison_table, limits, notes, statistics_table
from triton_magics.rendering.views.words import (
    compiled_text,
    entry_text,
    join_parts,
)

_BLOCK = re.compile(r"\b(BLOCK(?:_[A-Z]+)*)\s*=\s*(\d+)\b")


KERNELS = Heading("Phase 2: kernels", 2)
SPEED = Heading("Phase 3: benchmark results", 2)


def title(log: LogInput) -> str:
    """Return `torch.softmax Triton Kernel development log`, with the languages of the versions."""
    call = log.facts.torch_equivalent.split("(")[0].strip()
    name = call if re.fullmatch(r"torch(\.\w+)+", call) else log.facts.name
    used = dict.fromkeys(version.source.language for version in log.versions)
    titles = [_language_title(language) for language in used or (languages.DEFAULT,)]
    return f"{name} {join_with_and(titles)} Kernel development log"


def _language_title(language: str) -> str:
    """Return `CUDA C++`; the name itself where that language is not installed."""
    try:
        return languages.get(language).title
    except UserError:
        return language


# ----------------------------------------------------------------------------------- summary


def summary(log: LogInput) -> Document:
    """Return the chosen version, the finding behind it, and a table of all versions."""
    findings = (Text(finding(log.benchmark)),) if log.benchmark else ()
    table = (_glance_table(log),) if log.versions else ()
    analysis = tuple(Markdown(text) for text in log.analysis)
    return (Heading(title(log), 1), *choice(log), *findings, *table, *analysis)


def choice(log: LogInput) -> Document:
    """Return the chosen version with its figures, or the state of an unfinished op."""
    best, state = log.best, log.state
    if not best:
        return (_unfinished_line(state),)
    figures = join_parts(
        (
            f"{ratio_text(best.speedup)} as fast as torch" if best.speedup else None,
            f"final {time_text(best.final_us)}" if best.final_us is not None else None,
        )
    )
    name = f"{log.op} {best.source.version}"
    text = f"{name}: {figures}" if figures else name
    if best.provisional:
        chosen = Line(join_parts((text, best.provisional)), "warn", "PROVISIONAL")
    else:
        chosen = Line(text, "good", "CHOSEN")
    return (chosen,) if state.is_done else (chosen, _unfinished_line(state))


def _unfinished_line(state: OpState) -> Line:
    parts = (f"state {state.state}", missing_text(state))
    return Line(f"{state.op}: {', '.join(p for p in parts if p)}", "warn", "NOT FINISHED")


def _glance_table(log: LogInput) -> Table:
    header = ("Version", "technique", "verdict", "final", "speedup", "attempts")
    rows = tuple(_glance_row(log, v) for v in log.versions)
    return Table("versions at a glance", header, rows, "lllrrr")


def _glance_row(log: LogInput, version: VersionLog) -> tuple[str, ...]:
    timed = log.current_benchmark(version)
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


def research(log: LogInput) -> Document:
    """Return phase 1: formula, inputs, cost and techniques of the op."""
    facts = log.facts
    sizes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in facts.sizes.items())
    accumulate = f"accumulate in {facts.accumulate}" if facts.accumulate else ""
    bound = "" if facts.bound == "unknown" else f"{facts.bound}-bound"
    items: tuple[str, ...] = (
        f"Operation: {code(facts.torch_equivalent)}",
        f"Definition: {facts.formula}",
        f"Interface: {code(facts.signature)}",
        f"Input: {facts.input_shapes}; output: {facts.output_shape}",
        f"Sizes: {sizes}",
        "; ".join(filter(None, (f"Dtypes: {', '.join(facts.dtypes)}", accumulate))),
        f"Cost: {facts.complexity}" if facts.complexity else "",
        f"Memory: {'; '.join(filter(None, (facts.memory_pattern, bound)))}",
    )
    items = tuple(item for item in items if item and item != "Memory: ")
    techniques = (techniques_table(log.techniques),) if log.techniques else ()
    tips = (Details("tips", (Items(facts.tips),)),) if facts.tips else ()
    return (
        Heading("Phase 1: research and analysis", 2),
        Text(facts.description),
        Items(items),
        *techniques,
        *tips,
    )


# ----------------------------------------------------------------------------------- phase 2


def version_intro(log: LogInput, version: VersionLog) -> Document:
    """Return a version's heading, its technique, and the change from the previous version."""
    technique = f" — {version.technique}" if version.technique else ""
    lines = (
        Line(f"{code(version.source.path)} · entry {entry_text(version.source)}"),
        *_block_line(version.source),
        *_change_line(log, version),
    )
    notes = tuple(Markdown(text) for text in version.notes)
    return (Heading(f"{version.version}{technique}", 3), *lines, *notes)


def _block_line(source: KernelSource) -> Iterator[Line]:
    sizes = dict(_BLOCK.findall(source.source))
    if sizes:
        named = ", ".join(code(f"{name} = {value}") for name, value in sorted(sizes.items()))
        yield Line(f"block sizes: {named}")


def _change_line(log: LogInput, version: VersionLog) -> Iterator[Line]:
    index = log.versions.index(version)
    if index == 0:
        return
    previous = log.versions[index - 1]
    added, removed = changed_lines(previous.source.source, version.source.source)
    yield Line(f"against {short(previous.version)}: {added:,} lines added, {removed:,} removed")


def _change_details(log: LogInput, version: VersionLog) -> Iterator[Details]:
    """Yield the difference from the previous version, folded."""
    index = log.versions.index(version)
    if index == 0:
        return
    older, newer = log.versions[index - 1].source, version.source
    title = f"difference from {short(older.version)}"
    changes = Changes(title, older.version, newer.version, older.source, newer.source)
    if changes.hunks:
        yield Details(title, (changes,))


def changed_lines(before: str, after: str) -> tuple[int, int]:
    """Count the added and the removed lines."""
    diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))[2:]
    return sum(d.startswith("+") for d in diff), sum(d.startswith("-") for d in diff)


def attempt_intro(version: VersionLog, source: KernelSource) -> Document:
    """Return the reason why an attempt was replaced."""
    return (Line(f"Attempt {source.attempt} was replaced. {why_replaced(version, source)}"),)


def why_replaced(version: VersionLog, source: KernelSource) -> str:
    """Return the verdict on an attempt, or that it has none."""
    verdict, compiled = version.validation(source), version.compilation(source)
    if verdict:
        return join_parts((headline(verdict), *_causes(verdict)))
    if compiled and compiled.status is not Status.PASSED:
        return headline(compiled)
    return f"{short(version.version)} was rewritten before this attempt was validated"


def _causes(verdict: Validation) -> Iterator[str]:
    first = next(iter(verdict.failed_cases), None)
    if first and first.mismatch:
        yield mismatch_text(first.mismatch)
        if first.mismatch.cause:
            yield cause_text(first.mismatch.cause)
    if verdict.error and verdict.error.hint:
        yield f"hint: {verdict.error.hint}"


def kernels(log: LogInput) -> Document:
    """Return phase 2: every version with its code, its replaced attempts and the reasons."""
    blocks: list[Block] = [KERNELS]
    if not log.versions:
        blocks.append(Line("no version exists yet", "warn"))
    for version in log.versions:
        blocks += version_intro(log, version)
        for source in version.replaced_attempts:
            blocks += attempt_intro(version, source)
            blocks.append(
                Details(
                    f"code of attempt {source.attempt}",
                    (Code(source.source, source.code_language),),
                )
            )
        blocks += _change_details(log, version)
        blocks.append(Code(version.source.source, version.source.code_language))
        blocks += _compile_lines(version)
        blocks += sweep_part(version)
        blocks += profile_part(version.profile)
    return tuple(blocks)


def sweep_part(version: VersionLog) -> Document:
    """Return the result of the sweep over the version's settings, if there is one."""
    if not version.sweep:
        return ()
    return (Line(f"sweep: {sweep_finding(version.sweep)}", "info"), sweep_details(version.sweep))


def _compile_lines(version: VersionLog) -> Iterator[Line]:
    compiled = version.compilation(version.source)
    if compiled and compiled.status is Status.PASSED:
        yield Line(f"compiled for {compiled_text(compiled)}", "info")


# ----------------------------------------------------------------------------------- phase 3


def speed(log: LogInput) -> Document:
    """Return phase 3: the times, without the plots."""
    if not log.benchmarks:
        return (SPEED, Line("nothing was timed yet", "warn"))
    blocks: list[Block] = []
    for value in log.benchmarks:
        blocks += benchmark_part(value)
    return (SPEED, *blocks, *stale_lines(log))


def benchmark_part(value: Benchmark) -> Document:
    """Return one benchmark: summary, table, notes and badges, details folded."""
    if not value.timings or is_void(value):
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
    """Return the table Kernel, Small, Medium, Large, Final, on a GPU with Speedup; torch last."""
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


def stale_lines(log: LogInput) -> Iterator[Line]:
    """Yield a line for each version without a time of its current code."""
    for version in log.versions:
        if version.benchmark and not log.current_benchmark(version):
            yield Line(
                f"{version.version} was rewritten since it was timed: these times are of an "
                "earlier attempt",
                "warn",
            )
        elif not version.benchmark:
            yield Line(f"{version.version} was not timed", "info")


# ----------------------------------------------------------------------------------- phase 4


def selection(log: LogInput) -> Document:
    """Return phase 4: the chosen version, the reason, the remaining gains."""
    head = (Heading("Phase 4: the chosen kernel", 2), *choice(log))
    best = log.best
    if not best:
        return (*head, Line(f"next: {step_code(log.state.next_step, log.phrase)}"))
    means = best.geomean_speedup
    lines = (
        Line(f"why: {best.reason}"),
        Line(f"geometric mean of the sizes: {ratio_text(means)}") if means else None,
        Line(f"{code(best.source.path)} · entry {entry_text(best.source)}"),
        *remaining_gains(log),
    )
    return (*head, *(line for line in lines if line))


def remaining_gains(log: LogInput) -> Iterator[Line]:
    """Yield the distance from the limits of the GPU, and the techniques that no version names."""
    value = log.benchmark
    if value and value.clock == "gpu":
        for line in limits(value):
            yield Line(f"remaining gain: {line.text}")
    named = " ".join(f"{v.technique} {v.version}" for v in log.versions).lower()
    untried = [t.title for t in log.techniques if t.title.lower() not in named]
    if untried:
        yield Line(f"not named by any version: {', '.join(untried)}", "info")


# ------------------------------------------------------------------------------- environment


def environment(log: LogInput) -> Document:
    """Return the environment of the results, the forced steps, and the export command."""
    env = log.environment
    head = (Heading("Environment", 2),)
    if not env:
        return (*head, Line("no result yet", "warn"), *_notes(log))
    details = (
        f"device: {env.device}"
        + (f", compute capability {env.capability}" if env.capability else ""),
        f"driver {env.driver}, CUDA {env.cuda}" if env.driver else None,
        f"torch {env.torch}, triton {env.triton}, python {env.python}",
        f"precision: {', '.join(env.flags)}" if env.flags else None,
        f"written by {_log_step(log)}",
    )
    return (*head, Items(tuple(d for d in details if d)), *_notes(log))


def _log_step(log: LogInput) -> str:
    return step_code(NextStep("log", {"op": log.op}), log.phrase)


def _notes(log: LogInput) -> Iterator[Line]:
    for note in log.notes:
        yield Line(note, "warn")
