"""Views of an op's state, the workspace, an op's page, an exported log."""

from __future__ import annotations

from pathlib import PurePath

from triton_magics.model import (
    EngineState,
    Export,
    LabState,
    OpFacts,
    OpPage,
    OpState,
    Technique,
    VersionState,
    shape_text,
    short,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.blocks import (
    Code,
    Details,
    Document,
    Items,
    Line,
    LineStatus,
    Table,
    Text,
    code,
)
from triton_magics.rendering.numbers import (
    MISSING,
    count_text,
    join_with_and,
    list_text,
    ratio_text,
    time_text,
)
from triton_magics.rendering.phrase import Phrase, step_code
from triton_magics.rendering.views.badges import badge_labels
from triton_magics.rendering.views.words import (
    FIRST_STEP,
    VERDICTS,
    join_parts,
    next_line,
    unvalidated_text,
)

STATES = ("start", "write", "evaluation", "end")


def op_state_view(value: OpState, phrase: Phrase) -> Document:
    """Return the state, then every version with its verdict and time."""
    table = (versions_table(value),) if value.versions else ()
    return (
        state_line(value),
        *table,
        *missing_line(value),
        *_allowed_line(value),
        next_line(step_code(value.next_step, phrase)),
    )


def state_line(value: OpState) -> Line:
    """Return `softmax  start ─ write ─ [evaluation] ─ end · 3 of 3 versions`."""
    track = " ─ ".join(f"[{s}]" if s == value.state else s for s in STATES)
    done: LineStatus = "good" if value.is_done else "info"
    return Line(f"{track} · {_written_text(value)}", done, value.op)


def _written_text(value: OpState) -> str:
    n = sum(v.counted for v in value.versions)
    return f"{min(n, value.min_writes)} of {count_text(value.min_writes, 'version')} written" + (
        f", {n - value.min_writes} more" if n > value.min_writes else ""
    )


def missing_text(value: OpState) -> str:
    """Return `2 of 3 versions written, v2: not yet timed`; empty for an op that is done."""
    return ", ".join(gap.words for gap in value.missing)


def missing_line(value: OpState) -> Document:
    """Return a line with all that an op lacks before its end, if it lacks anything."""
    return (Line(f"missing: {missing_text(value)}", "warn"),) if value.missing else ()


def _allowed_line(value: OpState) -> Document:
    if not value.allowed:
        return ()
    return (Details("allowed now", (Text(", ".join(value.allowed)),)),)


def versions_table(value: OpState) -> Table:
    """Return version, verdict, cases, final, speedup, attempts, badges."""
    header = ("version", "verdict", "cases", "final", "speedup", "attempts", "notes")
    rows = tuple(_version_row(v) for v in value.versions)
    aligns = "llrrrrl"
    return Table(f"versions of {value.op}", header, rows, aligns)


def _version_row(v: VersionState) -> tuple[str, ...]:
    interpreted = " (interpreter)" if v.final_us and v.clock == "interpreter" else ""
    final = "not timed" if v.final_us is None and not v.means_us else time_text(v.final_us)
    return (
        v.version,
        verdict_cell(v),
        v.cases or MISSING,
        final + interpreted,
        ratio_text(v.speedup),
        _attempts_text(v),
        _notes(v),
    )


def version_row_text(v: VersionState) -> str:
    """Return `v2_tiling · ✓ right 46/46 · 13.0 us · 1.63x · 2 attempts · best`."""
    final = None if v.final_us is None else time_text(v.final_us)
    attempts = count_text(v.attempt, "attempt") if v.attempt > 1 else None
    verdict = " ".join(part for part in (verdict_cell(v), v.cases) if part)
    speedup = None if v.speedup is None else ratio_text(v.speedup)
    return join_parts((v.version, verdict, final, speedup, attempts, _notes(v) or None))


_BARS = "▁▂▃▄▅▆▇█"


def speedups_line(value: OpState) -> Document:
    """Return `speedup ▁▃█ v1 1.20x, v2 1.60x, v3 1.63x`; nothing for fewer than two."""
    timed = [(short(v.version), v.speedup) for v in value.versions if v.speedup]
    if len(timed) < 2:
        return ()
    top = max(speedup for _, speedup in timed)
    bars = "".join(_BARS[round((len(_BARS) - 1) * speedup / top)] for _, speedup in timed)
    return (Line(f"speedup {bars} {list_text([f'{v} {ratio_text(s)}' for v, s in timed])}"),)


def verdict_cell(v: VersionState) -> str:
    """Return `✓ right`, `✗ wrong`, `not validated`."""
    if v.validation is None:
        return unvalidated_text(v.compilation)
    status, word = VERDICTS[v.validation]
    interpreted = " (interpreter)" if v.validation_device == "interpreter" else ""
    return f"{Line('', status).sign} {word.lower()}{interpreted}"


def _attempts_text(v: VersionState) -> str:
    return f"{v.attempt} ({v.attempts_failed} failed)" if v.attempts_failed else str(v.attempt)


def _notes(v: VersionState) -> str:
    notes = (
        "best" if v.best else None,
        "exhausted" if v.exhausted else None,
        None if v.counted else "before the reset",
        *badge_labels(v.badges),
    )
    return ", ".join(dict.fromkeys(note for note in notes if note))


# -------------------------------------------------------------------------------------- lab


def lab_state_view(value: LabState, phrase: Phrase) -> Document:
    """Return every op with its state and best version, and the engine."""
    ops = count_text(len(value.ops), "op")
    head = Line(f"{ops} in {code(value.workspace)}", "info", "triton_magics")
    if not value.ops:
        return (head, engine_line(value.engine), next_line(step_code(FIRST_STEP, phrase)))
    rows = tuple(_op_row(op, phrase) for op in value.ops)
    header = ("op", "state", "versions", "right", "best", "final", "speedup", "next")
    aligns = "llrrlrrl"
    table = Table("ops of this workspace", header, rows, aligns)
    return (head, engine_line(value.engine), table, next_line(_lab_next(value, phrase)))


def _op_row(op: OpState, phrase: Phrase) -> tuple[str, ...]:
    best = next((v for v in op.versions if v.best), None)
    right = sum(
        v.validation is not None and VERDICTS[v.validation][0] == "good" for v in op.versions
    )
    return (
        op.op,
        op.state,
        f"{len(op.versions)} of {op.min_writes}",
        str(right),
        short(best.version) if best else MISSING,
        time_text(best.final_us) if best else MISSING,
        ratio_text(best.speedup) if best else MISSING,
        step_code(op.next_step, phrase),
    )


def _lab_next(value: LabState, phrase: Phrase) -> str:
    unfinished = [op for op in value.ops if not op.is_done]
    if not unfinished:
        return step_code(NextStep("log", {"op": value.ops[0].op}), phrase)
    return step_code(unfinished[0].next_step, phrase)


def engine_line(engine: EngineState) -> Line:
    """Return `NVIDIA H200 and 3 more · idle · standby ready`."""
    if engine.missing:
        return Line(join_parts((engine.device, engine.missing)), "warn")
    busy = f"busy: {engine.busy}" if engine.busy else "idle"
    standby = "standby ready" if engine.standby_ready else "standby warming up"
    more = len(engine.devices) - 1
    device = f"{engine.device} and {more} more" if more > 0 else engine.device
    return Line(join_parts((device, busy, standby)), "info")


# --------------------------------------------------------------------------------------- op


def op_page_view(value: OpPage, phrase: Phrase) -> Document:
    """Return formula, cost, techniques and state of an op."""
    facts = value.facts
    return (
        Line(join_parts((facts.formula, code(facts.torch_equivalent))), "info", facts.name),
        Line(join_parts(_shape_parts(facts))),
        *((Line(cost),) if (cost := join_parts(_cost_parts(facts))) else ()),
        Line(f"techniques: {join_parts(t.title for t in value.techniques) or MISSING}"),
        Line(_readings(value, phrase)),
        *_own_shapes(value, phrase),
        engine_line(value.engine),
        state_line(value.state),
        *((versions_table(value.state),) if value.state.versions else ()),
        *_page_details(value),
        *_torch_source(value),
        next_line(step_code(value.state.next_step, phrase)),
    )


def _shape_parts(facts: OpFacts) -> tuple[str | None, ...]:
    aliases = f"also called {', '.join(facts.aliases)}" if facts.aliases else None
    own = "user-defined op" if facts.own else None
    return (
        f"in {facts.input_shapes}",
        f"out {facts.output_shape}",
        code(facts.signature),
        aliases,
        own,
    )


def _cost_parts(facts: OpFacts) -> tuple[str | None, ...]:
    return (
        f"{facts.bound}-bound" if facts.bound != "unknown" else None,
        facts.complexity,
        facts.memory_pattern,
        f"accumulate in {facts.accumulate}" if facts.accumulate else None,
    )


def _readings(value: OpPage, phrase: Phrase) -> str:
    facts = value.facts
    template = {"pattern": facts.pattern, "op": facts.name, "version": "v1"}
    return (
        f"references: {step_code(NextStep('ref', {'words': (facts.name,)}), phrase)} · "
        f"templates: {step_code(NextStep('template', template), phrase)}"
        + (f" · torch: {value.torch_docs}" if value.torch_docs else "")
    )


def _torch_source(value: OpPage) -> Document:
    """Return torch's own Python source of the op, where it was asked for."""
    if value.torch_sources is None:
        return ()
    if not value.torch_sources:
        return (Line("torch has no reference or decomposition of it in Python", "info", "NONE"),)
    return tuple(
        block
        for source in value.torch_sources
        for block in (Line(f"{source.path}:{source.line}", "info", source.kind), Code(source.text))
    )


def _own_shapes(value: OpPage, phrase: Phrase) -> Document:
    if not value.own_shapes:
        return ()
    shapes = ", ".join(map(shape_text, value.own_shapes))
    remove = NextStep("op", {"op": value.facts.name, "no_shapes": value.own_shapes[:1]})
    hint = f"{step_code(remove, phrase)} removes one"
    return (Line(f"your own shapes, in every plan and benchmark: {shapes} · {hint}"),)


def _backward_text(facts: OpFacts) -> str | None:
    if facts.backward is None:
        return None
    inputs = join_with_and(list(facts.backward.output_gradients))
    outputs = join_with_and(list(facts.backward.returned))
    return f"the op {facts.name}_backward takes {inputs} too and returns the gradients of {outputs}"


def _page_details(value: OpPage) -> Document:
    facts = value.facts
    sizes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in facts.sizes.items())
    about = (
        f"sizes: {sizes}", f"dtypes: {', '.join(facts.dtypes)}", facts.description,
        _backward_text(facts),
    )  # fmt: skip
    details: list[Details] = [Details("about", (Items(tuple(t for t in about if t)),))]
    if value.techniques:
        details.append(Details("techniques", (techniques_table(value.techniques),)))
    if facts.tips:
        details.append(Details("tips", (Items(facts.tips),)))
    return tuple(details)


def techniques_table(techniques: tuple[Technique, ...]) -> Table:
    """Return a table of techniques: description and use."""
    rows = tuple((t.title, t.description, t.helps_when) for t in techniques)
    header = ("technique", "description", "helps when")
    return Table("optimisation techniques", header, rows, "lll")


# ----------------------------------------------------------------------------------- export


def export_view(value: Export, _phrase: Phrase) -> Document:
    """Return the paths of the log's files."""
    files = (
        ("notebook", value.notebook),
        ("Markdown", value.markdown),
        ("HTML", value.html),
        ("events", value.jsonl),
        ("tests", value.tests),
    )
    written = tuple(f"{kind}: {code(path)}" for kind, path in files if path)
    note = (Line(value.note, "warn"),) if value.note else ()
    folder = PurePath(value.workspace).name or value.workspace  # no paths of a machine in a record
    return (
        Line(f"{value.op}: log written in {code(folder)}", "good", "EXPORTED"),
        Items(written),
        *note,
        next_line(f"open `{value.notebook}`, or send it for review"),
    )
