"""One method per verb. A front end parses, calls one of these, and shows the value."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Self, TypeVar

from triton_magics import knowledge, report, workflow
from triton_magics.config import Settings
from triton_magics.engine import Engine
from triton_magics.engine.protocol import (
    BenchJob,
    PlanJob,
    Progress,
    RunJob,
    ValidateJob,
)
from triton_magics.errors import (
    BadKernelSource,
    BadValue,
    IllegalStep,
    UnknownName,
    UnknownVersion,
    UserError,
    did_you_mean,
)
from triton_magics.lab import log, outcomes, several
from triton_magics.lab.defaults import facts_of_own_op, ranked, validate_options
from triton_magics.lab.desk import Desk, nothing_written
from triton_magics.model import (
    SIZES,
    Benchmark,
    Best,
    Compilation,
    Diagnosis,
    EngineState,
    Export,
    KernelSource,
    LabState,
    OpPage,
    OpState,
    Plan,
    Reference,
    Report,
    RunResult,
    Status,
    Summary,
    Template,
    Validation,
    Validations,
    Value,
    Written,
    check_op_name,
    parse_version,
    shape_text,
    version_name,
)
from triton_magics.workspace import inspect_source

V = TypeVar("V", bound=Value)
Shape = tuple[int, ...]
MAX_RUNS = 1000


class Lab:
    """A workspace, an engine and the rules between them.

    Args:
        path: folder of kernels/ and logs/; by default the one of the settings, else this one.
        strict: a step that the workflow does not allow is an error; else a note.
        settings: what the user set.
        engine: what runs kernels; by default one of its own, started when first needed.

    Attributes:
        last: the value of the last verb, also where it was interrupted or raised.
        on_progress: told every step of a job.
        on_output: told what a kernel prints, as it prints it.
        on_change: each is called with an op's name after something was recorded of it.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        strict: bool | None = None,
        settings: Settings | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.settings = settings or Settings()
        if strict is not None:
            self.settings.strict = strict
        self.last: Value | None = None
        folder = Path(path or self.settings.workspace or ".").expanduser().resolve()
        self._desk = Desk(folder, self.settings, engine or Engine(self.settings))

    @property
    def path(self) -> Path:
        """The workspace's folder, absolute."""
        return self._desk.path

    @property
    def on_progress(self) -> Callable[[Progress], None] | None:
        """Told every step of a job."""
        return self._desk.on_progress

    @on_progress.setter
    def on_progress(self, listener: Callable[[Progress], None] | None) -> None:
        self._desk.on_progress = listener

    @property
    def on_output(self) -> Callable[[str], None] | None:
        """Told what a kernel prints, as it prints it."""
        return self._desk.on_output

    @on_output.setter
    def on_output(self, listener: Callable[[str], None] | None) -> None:
        self._desk.on_output = listener

    @property
    def on_change(self) -> list[Callable[[str], None]]:
        """Each is called with an op's name after something was recorded of it."""
        return self._desk.on_change

    def close(self) -> None:
        """Ends the engine's processes and closes the store; a second time does nothing."""
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -------------------------------------------------------------------------------- the ops

    def op(
        self, op: str, *, shapes: Sequence[Shape] = (), no_shapes: Sequence[Shape] = ()
    ) -> OpPage:
        """An op's facts, techniques, state and engine; its references count as shown.

        Args:
            op: its name or alias.
            shapes: shapes of your own to keep for it: they join every plan.
            no_shapes: those to keep no longer.

        Raises:
            UnknownOp: neither shipped nor defined here.
            UnknownName: a shape that is to go was not kept.
        """
        name = self._desk.canonical(op)
        self._desk.warm()
        self._desk.record(name, "shown", None)
        self._desk.keep_shapes(name, shapes, no_shapes)
        return self._remember(self._desk.page(name))

    def reference(self, op: str, source: str) -> OpPage:
        """Defines the user's own op from a cell with `reference` and `make_inputs`.

        Raises:
            BadName, UserError: not a name, a name that ships, a reference that can't be used.
        """
        name = check_op_name(op)
        if name in knowledge.op_names() or name in knowledge.aliases():
            raise UserError(
                f"{name!r} ships with triton_magics; choose another name for your own op"
            )
        _parse(source)
        description = self._desk.describe(name, source)
        facts = facts_of_own_op(name, description)
        self._desk.workspace.define(name, source, facts)
        self._desk.changed(name)
        return self.op(name)

    def ref(self, *words: str) -> Reference:
        """A piece of the knowledge base, or what a search finds in it; no words: what there is."""
        query = " ".join(words)
        return self._remember(knowledge.search(query))

    def template(self, pattern: str, op: str, version: str) -> Template:
        """A starting point for a version, to be edited in a cell.

        Raises:
            UnknownName: no such pattern.
            UnknownOp, BadName: no such op, no such name.
        """
        name = self._desk.canonical(op)
        number, slug = parse_version(version)
        source = knowledge.template(pattern, name)
        made = Template(pattern=pattern, op=name, version=version_name(number, slug), source=source)
        return self._remember(made)

    # ------------------------------------------------------------------------------- versions

    def write(
        self,
        op: str,
        version: str,
        source: str,
        *,
        entry: str | None = None,
        technique: str | None = None,
        cell_offset: int = 0,
        compile: bool = True,  # noqa: A002 (the word that users type)
    ) -> Written:
        """Saves a version's source as an attempt and compiles it, GPU or not.

        Args:
            op: its name or alias.
            version: `v2`, `v2_online`.
            source: a whole module, byte for byte.
            entry: the wrapper's name; by default `triton_<op>`, `solve`, or the only one there is.
            technique: what this version tries, for the log.
            cell_offset: lines of the cell before the source (1 for a magic's own line).
            compile: whether to compile it right away.

        Raises:
            BadKernelSource, AmbiguousEntry: no module with an entry point; nothing was saved.
            UserError: the number has another slug already.
        """
        name = self._desk.canonical(op)
        self._desk.gate("write", name)
        found, signature = inspect_source(name, self._desk.aliases(name), source, entry)
        kept, unchanged = self._desk.workspace.write(
            name,
            version,
            source,
            entry=found,
            signature=signature,
            cell_offset=cell_offset,
            technique=technique,
        )
        self._desk.changed(name)
        compiled = self._desk.compiled(kept) if compile else None
        number = kept.number + 1
        technique_hint, block_hint = knowledge.version_hint(name, number)
        return self._remember(
            Written(
                source=kept,
                unchanged=unchanged,
                compilation=compiled,
                next_version=version_name(number) if number <= 4 else None,
                next_technique=technique_hint,
                block_hint=block_hint,
            )
        )

    def inspect(self, op: str, version: str, *, target: str | None = None) -> Compilation:
        """Registers, spills, shared memory and occupancy, for the GPU here or another (`sm_90`).

        Raises:
            BadValue: no such target.
        """
        source = self._desk.source(op, version)
        return self._remember(
            self._desk.compile(source, _target(target) or self._desk.default_target())
        )

    def source(self, op: str, version: str, attempt: int | None = None) -> KernelSource:
        """The source of a version, of its newest attempt by default."""
        return self._desk.workspace.source(self._desk.canonical(op), version, attempt)

    def attempts(self, op: str, version: str) -> tuple[KernelSource, ...]:
        """Every attempt at a version, oldest first."""
        return self._desk.workspace.attempts(self._desk.canonical(op), version)

    def restore(self, op: str, version: str, attempt: int) -> Written:
        """Makes an earlier attempt the newest again."""
        name = self._desk.canonical(op)
        self._desk.gate("restore", name)
        source = self._desk.workspace.restore(name, version, attempt)
        self._desk.changed(name)
        return self._remember(Written(source=source))

    # -------------------------------------------------------------------------------- verdicts

    def run(
        self,
        op: str,
        version: str,
        *,
        size: str = "small",
        shape: Shape | None = None,
        dtype: str = "float32",
        seed: int = 0,
        inputs: str | None = None,
        timeout: float | None = None,
    ) -> RunResult:
        """Calls a version twice on one input: what it gives, prints, and how long the host waits.

        Args:
            op, version: which.
            size: small, medium or large.
            shape: in its place.
            dtype, seed: of the inputs.
            inputs: in place of all these, a Python expression with `torch` and `device` in it.
            timeout: seconds that it may take in all.
        """
        _check_sizes((size,))
        source = self._desk.source(op, version)
        self._desk.gate("run", source.op)
        job = RunJob(
            op=self._desk.op_ref(source.op),
            version=self._desk.version_ref(source),
            size=size,
            shape=shape,
            dtype=dtype,
            seed=seed,
            inputs=inputs,
            compile_s=self.settings.compile_s,
        )
        said = inputs or (f"{shape_text(shape)} {dtype}" if shape else f"{size} {dtype}")
        outcome = self._desk.do(job, source.sha256, timeout)
        result = outcomes.run_result(outcome, job, said)
        self._desk.record(source.op, "ran", result, source=source)
        return self._end(result)

    def validate(
        self,
        op: str,
        version: str,
        *,
        dtypes: Sequence[str] | None = None,
        plan: Literal["full", "quick"] = "full",
        seed: int | None = None,
        rtol: float | None = None,
        atol: float | None = None,
        shapes: Sequence[Shape] = (),
        sanitize: bool = False,
        timeout: float | None = None,
    ) -> Validation | Validations:
        """Is it right? Against a float64 oracle, on hostile inputs.

        Args:
            op: its name or alias.
            version: `v2`, or `all`: a `Validations`.
            dtypes: None: all that the op declares.
            plan: `full`, or `quick`: fewer cases, enough for a benchmark but not for the end.
            seed: of the plan; by default a secret one, which the result tells.
            rtol, atol: in place of the calibrated tolerance; a badge from then on.
            shapes: only these.
            sanitize: run a case under compute-sanitizer too: memcheck, racecheck, initcheck.
            timeout: seconds that it may take in all.
        """
        if version == "all":
            name = self._desk.canonical(op)
            every = [v.version for v in self._desk.workspace.versions(name)]
            if not every:
                raise UnknownVersion(nothing_written(name))
            made = [
                self.validate(
                    name, v, dtypes=dtypes, plan=plan, seed=seed, rtol=rtol, atol=atol,
                    shapes=shapes, sanitize=sanitize, timeout=timeout,
                )
                for v in every
            ]  # fmt: skip
            return self._remember(
                Validations(validations=tuple(v for v in made if isinstance(v, Validation)))
            )
        source = self._desk.source(op, version)
        self._desk.gate("validate", source.op)
        self._desk.check_dtypes(source.op, dtypes)
        for label, value in (("rtol", rtol), ("atol", atol)):
            if value is not None and not 0 <= value < 1:
                raise BadValue(f"{label}={value:g} is no tolerance: write a number from 0 to 1")
        interpreted = self._desk.engine.device_kind == "interpreter"
        job = ValidateJob(
            op=self._desk.op_ref(source.op),
            version=self._desk.version_ref(source),
            dtypes=tuple(dtypes) if dtypes else None,
            plan=plan,
            shapes=tuple(shapes),
            own_shapes=self._desk.own_shapes(source.op),
            sanitize=sanitize,
            seed=secrets.randbits(24) if seed is None else seed,
            rtol=rtol,
            atol=atol,
            budget_s=self.settings.validate_budget_s if interpreted else None,
            compile_s=self.settings.compile_s,
        )
        outcome = self._desk.do(job, source.sha256, timeout)
        made_one = outcomes.validation(outcome, job).model_copy(
            update={"options": validate_options(dtypes, rtol, atol, shapes)}
        )
        made_one = self._desk.with_context(self._desk.located(made_one, source), source)
        self._desk.record(source.op, "validated", made_one, source=source)
        return self._end(made_one)

    def plan(
        self,
        op: str,
        *,
        dtypes: Sequence[str] | None = None,
        plan: Literal["full", "quick"] = "full",
        seed: int | None = None,
        shapes: Sequence[Shape] = (),
    ) -> Plan:
        """What a validation would run, and what this device would leave out; needs no version.

        Args:
            op: its name or alias.
            dtypes: None: all that the op declares.
            plan: `full` or `quick`.
            seed: of the plan; by default a new one, which `validate(seed=...)` then runs.
            shapes: only these.
        """
        name = self._desk.canonical(op)
        self._desk.check_dtypes(name, dtypes)
        job = PlanJob(
            op=self._desk.op_ref(name),
            dtypes=tuple(dtypes) if dtypes else None,
            plan=plan,
            shapes=tuple(shapes),
            own_shapes=self._desk.own_shapes(name),
            seed=secrets.randbits(24) if seed is None else seed,
            device_kind=self._desk.engine.device_kind,
        )
        outcome = self._desk.do(job, "", None)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        made = outcomes.plan(outcome, name)
        return self._remember(made.model_copy(update={"device": self.engine_state().device}))

    def bench(
        self,
        op: str,
        *versions: str,
        sizes: Sequence[str] = SIZES,
        runs: int = 10,
        dtype: str = "float32",
        against: Sequence[str] = (),
        hot: bool = False,
        budget: float | None = None,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Benchmark:
        """How fast? Ten runs a size, every provider in random order, torch beside them.

        Args:
            op: its name or alias.
            versions: none or `all`: every version that passed its validation.
            sizes: of small, medium, large.
            runs: timed runs a size.
            dtype: of the inputs.
            against: `torch.compile`, a version, or `module:function`.
            hot: leave the inputs in the L2 cache.
            budget: seconds.
            seed: of inputs and order.
            timeout: seconds that it may take in all.

        Raises:
            IllegalStep: a version has not passed a validation of this very source.
        """
        name = self._desk.canonical(op)
        _check_sizes(sizes)
        if not 1 <= runs <= MAX_RUNS:
            raise BadValue(f"runs={runs}: write a number from 1 to {MAX_RUNS}")
        self._desk.gate("bench", name)
        own = [a for a in against if self._desk.known(name, a)]
        sources = self._desk.to_be_timed(name, (*versions, *own), dtype)
        job = BenchJob(
            op=self._desk.op_ref(name),
            versions=tuple(self._desk.version_ref(s) for s in sources),
            sizes=tuple(s for s in SIZES if s in sizes),
            runs=runs,
            dtype=dtype,
            against=tuple(a for a in against if a not in own),
            cold=not hot,
            seed=secrets.randbits(24) if seed is None else seed,
            budget_s=self.settings.bench_budget_s if budget is None else budget,
            compile_s=self.settings.compile_s,
        )
        longest = max(self.settings.job_s, 2 * job.budget_s) if timeout is None else timeout
        outcome = self._desk.do(job, "+".join(sorted(s.sha256 for s in sources)), longest)
        made = outcomes.benchmark(outcome, job)
        made = made.model_copy(update={"badges": (*made.badges, *self._desk.badges(name, sources))})
        self._desk.record(name, "benchmarked", made)
        return self._end(made)

    def best(self, op: str, *, now: bool = False) -> Best:
        """The version to ship, with its code: the smallest final within one benchmark.

        Args:
            op: its name or alias.
            now: before the workflow's end, with what is known.

        Raises:
            IllegalStep: not at its end, and not `now`.
            UnknownVersion: no version has passed.
        """
        name = self._desk.canonical(op)
        sentence = workflow.check("best", self._desk.facts(name), now=now)
        if sentence and not now:
            raise IllegalStep(sentence)
        versions = self._desk.workspace.versions(name)
        chosen = ranked(name, versions, self._desk.workspace.ranking(name))
        best = Best(source=self._desk.workspace.source(name, chosen.version), **chosen.figures)
        self._desk.record(name, "chosen", best)
        return self._remember(best)

    # ---------------------------------------------------------------------------------- state

    def status(
        self, op: str | None = None, *, force_write: str | None = None, reset: bool = False
    ) -> OpState | LabState:
        """Where an op stands; without one, where every op of the workspace does.

        Args:
            op: its name or alias.
            force_write: a reason to go back to writing without a verdict.
            reset: start over; the history stays.
        """
        if op is None:
            if force_write is not None or reset:
                raise BadValue("name the op: %triton_status OP --reset")
            states = tuple(self._desk.state(name) for name in self._desk.workspace.open_ops())
            state = LabState(workspace=self.path.name, ops=states, engine=self.engine_state())
            return self._remember(state)
        name = self._desk.canonical(op)
        if force_write is not None:
            self._desk.gate("force-write", name)
            self._desk.record(name, "forced", None, args={"reason": force_write})
        if reset:
            self._desk.record(name, "reset", None)
        return self._remember(self._desk.state(name))

    def engine_state(self) -> EngineState:
        """What there is to run kernels with."""
        return self._desk.engine.state()

    def doctor(self, *, repair: bool = False) -> Diagnosis:
        """What kernels need of this machine and this folder: what is wrong, and how to mend it.

        Args:
            repair: mend what can be mended in the workspace without losing anything: an edit of a
                file becomes an attempt, a lost file is put back, a damaged store is rebuilt.

        Raises:
            WorkspaceError: to be repaired, and can't be written.
        """
        desk = self._desk
        ops = [knowledge.facts(name) for name in knowledge.op_names()]
        kept = desk.workspace.repair() if repair else desk.workspace.check()
        findings = (*desk.engine.examine(ops), *kept)
        return self._remember(Diagnosis(findings=findings))

    def ops(self) -> tuple[str, ...]:
        """Every name that an op answers to: shipped ones, their aliases, the user's own."""
        own = self._desk.workspace.own_ops()
        return tuple(sorted({*knowledge.op_names(), *knowledge.aliases(), *own}))

    def versions(self, op: str) -> tuple[str, ...]:
        """The versions of an op that are written."""
        return tuple(v.version for v in self._desk.workspace.versions(self._desk.canonical(op)))

    def validation(self, op: str, version: str) -> Validation | None:
        """The newest validation of a version's newest attempt."""
        return self._desk.workspace.latest_validation(self._desk.canonical(op), version)

    def benchmark(self, op: str) -> Benchmark | None:
        """The newest benchmark of an op."""
        return self._desk.workspace.latest_benchmark(self._desk.canonical(op))

    def notes(self) -> tuple[str, ...]:
        """What to tell the user once: steps out of order, repairs of the store."""
        return self._desk.notes()

    def export(self, op: str, *, tests: bool = False) -> Export:
        """Writes the op's log as a notebook, Markdown and HTML; returns their paths.

        Args:
            op: its name or alias.
            tests: write tests/test_<op>.py too, which validates every version that passed.

        Raises:
            ExportError: a file could not be written, or is a person's own.
            UnknownVersion: tests of no version: none has passed.
        """
        name = self._desk.canonical(op)
        written = (
            log.write_tests(self._desk.workspace, self._desk.facts_of(name)) if tests else None
        )
        gathered = log.gather(
            self._desk.workspace,
            self._desk.facts_of(name),
            self._desk.state(name),
            budget_s=self.settings.validate_budget_s,
        )
        made = log.write(self._desk.workspace, name, gathered)
        made = made.model_copy(update={"tests": written})
        self._desk.changed(name)
        return self._remember(made)

    # ---------------------------------------------------------------------------- several ops

    def take(self, ops: Sequence[str] = ()) -> Report:
        """Takes each op through its phases with the versions that are there.

        What has no verdict is validated, what passed is timed. It stops where a version is to be
        written, or mended (three attempts at most; then the op goes on without it); called again
        it goes on.

        Args:
            ops: names or aliases, in order; by default every op of the workspace.
        """
        names = self._named(ops)
        paused_at = several.take(self, names, sync=self._desk.source)
        return self._remember(self._over_all(names, paused_at))

    def report(self, ops: Sequence[str] = ()) -> Report:
        """How far each op came, its best version, what failed and why; runs nothing.

        Args:
            ops: names or aliases; by default every op of the workspace.
        """
        return self._remember(self._over_all(self._named(ops), None))

    def summary(self, *, max_chars: int = 6000) -> Summary:
        """Writes docs/summarization.md: what a newcomer or a program needs to go on.

        State, next steps, how to go on, versions, what was tried and failed; what does not fit is
        cut from the end, and named.

        Args:
            max_chars: the longest that the text may be.

        Raises:
            BadValue: too short to say anything.
            ExportError: it could not be written, or is a person's own.
        """
        if max_chars < report.SHORTEST_SUMMARY:
            least = report.SHORTEST_SUMMARY
            raise BadValue(f"max_chars={max_chars}: nothing fits; write {least} or more")
        desk, names = self._desk, self._named(())
        histories = [
            log.gather(
                desk.workspace, desk.facts_of(name), desk.state(name),
                budget_s=self.settings.validate_budget_s,
            )
            for name in names
        ]  # fmt: skip
        made = report.summary(self._over_all(names, None), histories, max_chars=max_chars)
        path = log.write_summary(desk.workspace, made.markdown)
        return self._remember(
            Summary(path=path, markdown=made.markdown, max_chars=max_chars, left_out=made.left_out)
        )

    def _named(self, ops: Sequence[str]) -> tuple[str, ...]:
        """Each op once; all are known before anything is done."""
        named = tuple(dict.fromkeys(self._desk.canonical(op) for op in ops))
        return named or self._desk.workspace.open_ops()

    def _over_all(self, names: Sequence[str], paused_at: str | None) -> Report:
        states = [self._desk.state(name) for name in names]
        return several.over_all(self._desk.workspace, states, paused_at)

    # -------------------------------------------------------------------------------- within

    def _remember(self, value: V) -> V:
        self.last = value
        return value

    def _end(self, value: V) -> V:
        """The value of a job; an interrupted one is kept as `last`, and the interrupt goes on."""
        self.last = value
        if getattr(value, "status", None) is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return value


def _check_sizes(sizes: Sequence[str]) -> None:
    for size in sizes:
        if size not in SIZES:
            raise UnknownName(
                f"unknown size {size!r}.{did_you_mean(size, SIZES)} Known: {', '.join(SIZES)}"
            )


def _target(name: str | None) -> int | None:
    """90 of `sm_90`.

    Raises:
        BadValue: not of that form.
    """
    if name is None:
        return None
    digits = name.removeprefix("sm_")
    if not digits.isdigit() or not 70 <= int(digits) <= 130:
        raise BadValue(f"{name!r} is no target: write sm_80, sm_89, sm_90, sm_100 or sm_120")
    return int(digits)


def _parse(source: str) -> None:
    try:
        ast.parse(source)
    except SyntaxError as error:
        raise BadKernelSource(
            f"line {error.lineno}: {error.msg}", line=error.lineno, code=error.text
        ) from error
