"""Where things stand: an op, the workspace, the page that opens an op, the files of a log."""

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
from triton_magics.report.blocks import Details, Document, Items, Line, LineStatus, Table, code
from triton_magics.report.numbers import MISSING, count_text, ratio_text, time_text
from triton_magics.report.views.words import VERDICTS, following, joined, step_text

STATES = ("start", "write", "evaluation", "end")


def op_state_view(value: OpState) -> Document:
    """The state first, then every version with its verdict and time."""
    table = (versions_table(value),) if value.versions else ()
    return (state_line(value), *table, *_allowed_line(value), following(step_text(value.next_step)))


def state_line(value: OpState) -> Line:
    """`softmax  start ─ write ─ [evaluation] ─ end · 3 of 3 versions`."""
    track = " ─ ".join(f"[{s}]" if s == value.state else s for s in STATES)
    done: LineStatus = "good" if value.state == "end" else "info"
    return Line(f"{track} · {_written_text(value)}", done, value.op)


def _written_text(value: OpState) -> str:
    n = sum(v.counted for v in value.versions)
    return f"{min(n, value.min_writes)} of {count_text(value.min_writes, 'version')} written" + (
        f", {n - value.min_writes} more" if n > value.min_writes else ""
    )


def _allowed_line(value: OpState) -> Document:
    if not value.allowed:
        return ()
    return (Line(f"allowed now: {', '.join(value.allowed)}", "info"),)


def versions_table(value: OpState) -> Table:
    """Version, verdict, cases, final, speedup, attempts, reservations."""
    header = ("version", "verdict", "cases", "final", "speedup", "attempts", "notes")
    rows = tuple(_version_row(v) for v in value.versions)
    aligns = "llrrrrl"
    return Table(f"versions of {value.op}", header, rows, aligns)


def _version_row(v: VersionState) -> tuple[str, ...]:
    interpreted = " (interpreter)" if v.clock == "interpreter" else ""
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


def verdict_cell(v: VersionState) -> str:
    """`✓ right`, `✗ wrong`, `not validated`."""
    if v.validation is None:
        return "not validated"
    status, word = VERDICTS[v.validation]
    interpreted = " (interpreter)" if v.validation_device == "interpreter" else ""
    return f"{Line('', status).sign} {word.lower()}{interpreted}"


def _attempts_text(v: VersionState) -> str:
    return f"{v.attempt} ({v.attempts_failed} failed)" if v.attempts_failed else str(v.attempt)


def _notes(v: VersionState) -> str:
    quick = v.validation_plan if v.validation_plan not in (None, "full") else None
    notes = (
        "best" if v.best else None,
        "exhausted" if v.exhausted else None,
        None if v.counted else "before the reset",
        quick,
        *v.badges,
    )
    return ", ".join(dict.fromkeys(note for note in notes if note))


# -------------------------------------------------------------------------------------- lab


def lab_state_view(value: LabState) -> Document:
    """Every op with its state and best version, and the engine."""
    ops = count_text(len(value.ops), "op")
    head = Line(f"{ops} in {code(value.workspace)}", "info", "triton_magics")
    if not value.ops:
        return (head, engine_line(value.engine), following("`%triton_op softmax`"))
    rows = tuple(_op_row(op) for op in value.ops)
    header = ("op", "state", "versions", "right", "best", "final", "speedup", "next")
    aligns = "llrrlrrl"
    table = Table("ops of this workspace", header, rows, aligns)
    return (head, engine_line(value.engine), table, following(_lab_next(value)))


def _op_row(op: OpState) -> tuple[str, ...]:
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
        step_text(op.next_step),
    )


def _lab_next(value: LabState) -> str:
    unfinished = [op for op in value.ops if op.state != "end"]
    if not unfinished:
        return f"`%triton_log {value.ops[0].op}`"
    return step_text(unfinished[0].next_step)


def engine_line(engine: EngineState) -> Line:
    """`NVIDIA H200 · idle · standby ready`."""
    if engine.missing:
        return Line(joined((engine.device, engine.missing)), "warn")
    busy = f"busy: {engine.busy}" if engine.busy else "idle"
    standby = "standby ready" if engine.standby_ready else "standby warming up"
    return Line(joined((engine.device, busy, standby)), "info")


# --------------------------------------------------------------------------------------- op


def op_page_view(value: OpPage) -> Document:
    """What is computed, what bounds it, which techniques fit, where it stands."""
    facts = value.facts
    return (
        Line(joined((facts.formula, code(facts.torch_equivalent))), "info", facts.name),
        Line(joined(_shape_parts(facts))),
        Line(joined(_cost_parts(facts))),
        Line(f"techniques: {joined(t.title for t in value.techniques) or MISSING}"),
        Line(_readings(facts)),
        *_own_shapes(value),
        engine_line(value.engine),
        state_line(value.state),
        *((versions_table(value.state),) if value.state.versions else ()),
        *_page_details(value),
        following(step_text(value.state.next_step)),
    )


def _shape_parts(facts: OpFacts) -> tuple[str | None, ...]:
    aliases = f"also called {', '.join(facts.aliases)}" if facts.aliases else None
    own = "your own op" if facts.own else None
    return (
        f"in {facts.input_shapes}",
        f"out {facts.output_shape}",
        code(facts.signature),
        aliases,
        own,
    )


def _cost_parts(facts: OpFacts) -> tuple[str | None, ...]:
    return (
        f"{facts.bound}-bound",
        facts.complexity,
        facts.memory_pattern,
        f"accumulate in {facts.accumulate}",
    )


def _readings(facts: OpFacts) -> str:
    return (
        f"references: `%triton_ref {facts.name}` · "
        f"templates: `%triton_template {facts.pattern} {facts.name} v1`"
    )


def _own_shapes(value: OpPage) -> Document:
    if not value.own_shapes:
        return ()
    shapes = ", ".join(map(shape_text, value.own_shapes))
    gone = f"`%triton_op {value.facts.name} --no-shape {shape_text(value.own_shapes[0])}`"
    return (Line(f"your own shapes, in every plan and benchmark: {shapes} · {gone} removes one"),)


def _page_details(value: OpPage) -> Document:
    facts = value.facts
    sizes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in facts.sizes.items())
    about = (f"sizes: {sizes}", f"dtypes: {', '.join(facts.dtypes)}", facts.description)
    found: list[Details] = [Details("about", (Items(tuple(t for t in about if t)),))]
    if value.techniques:
        found.append(Details("techniques", (techniques_table(value.techniques),)))
    if facts.tips:
        found.append(Details("tips", (Items(facts.tips),)))
    return tuple(found)


def techniques_table(techniques: tuple[Technique, ...]) -> Table:
    """What each technique is and when it helps."""
    rows = tuple((t.title, t.description, t.helps_when) for t in techniques)
    header = ("technique", "what it does", "helps when")
    return Table("optimisation techniques", header, rows, "lll")


# ----------------------------------------------------------------------------------- export


def export_view(value: Export) -> Document:
    """Where the log was written."""
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
        following(f"open `{value.notebook}`, or send it for review"),
    )
