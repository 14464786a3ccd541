"""The verbs that run a kernel: is it right, how fast is it, which is best."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal, get_args

from triton_magics import workflow
from triton_magics.engine.protocol import (
    BenchJob,
    PlanJob,
    RunJob,
    SelfTestJob,
    TimerName,
    ValidateJob,
)
from triton_magics.errors import (
    BadValue,
    IllegalStep,
    Interrupted,
    UnknownName,
    UnknownVersion,
    did_you_mean,
)
from triton_magics.lab import outcomes, providers
from triton_magics.lab.checks import check_budget, check_runs, check_sizes, seeded
from triton_magics.lab.defaults import ranked, validate_options
from triton_magics.lab.part import Part
from triton_magics.model import (
    SIZES,
    Benchmark,
    Best,
    Plan,
    RunResult,
    SelfTest,
    Status,
    Validation,
    Validations,
    VersionState,
    shape_text,
    short,
)

Shape = tuple[int, ...]


class Verdicts(Part):
    """Runs, validations, benchmarks, the choice."""

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
        check_sizes((size,), shapes=False)
        source = self._desk.source(op, version)
        self._desk.gate("run", source.op)
        job = RunJob(
            op=self._jobs.op_ref(source.op),
            version=self._jobs.version_ref(source),
            size=size,
            shape=shape,
            dtype=dtype,
            seed=seeded(seed),
            inputs=inputs,
            compile_s=self.settings.compile_s,
        )
        said = inputs or (f"{shape_text(shape)} {dtype}" if shape else f"{size} {dtype}")
        outcome = self._jobs.run(job, source.sha256, timeout)
        result = outcomes.run_result(outcome, job, said)
        self._desk.record(source.op, "ran", result, source=source)
        return self._end(result)

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
            op=self._jobs.op_ref(name),
            dtypes=tuple(dtypes) if dtypes else None,
            plan=plan,
            shapes=tuple(shapes),
            own_shapes=self._desk.own_shapes(name),
            seed=seeded(seed),
            device_kind=self._jobs.engine.device_kind,
        )
        outcome = self._jobs.run(job, "", None)
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        made = outcomes.plan(outcome, name)
        return self._remember(made.model_copy(update={"device": self._jobs.engine.state().device}))

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
            made = [
                self.validate(
                    name, v, dtypes=dtypes, plan=plan, seed=seed, rtol=rtol, atol=atol,
                    shapes=shapes, sanitize=sanitize, timeout=timeout,
                )
                for v in self._desk.every_version(name)
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
        interpreted = self._jobs.engine.device_kind == "interpreter"
        job = ValidateJob(
            op=self._jobs.op_ref(source.op),
            version=self._jobs.version_ref(source),
            dtypes=tuple(dtypes) if dtypes else None,
            plan=plan,
            shapes=tuple(shapes),
            own_shapes=self._desk.own_shapes(source.op),
            sanitize=sanitize,
            seed=seeded(seed),
            rtol=rtol,
            atol=atol,
            budget_s=self.settings.validate_budget_s if interpreted else None,
            compile_s=self.settings.compile_s,
        )
        outcome = self._jobs.run(job, source.sha256, timeout)
        made_one = outcomes.validation(outcome, job).model_copy(
            update={"options": validate_options(dtypes, rtol, atol, shapes)}
        )
        made_one = self._jobs.located(made_one, source)
        try:
            made_one = self._jobs.with_context(made_one, source)
        except KeyboardInterrupt:  # the verdict stands, without what the compiler says
            self._desk.record(source.op, "validated", made_one, source=source)
            self.last = made_one
            raise Interrupted(made_one) from None
        self._desk.record(source.op, "validated", made_one, source=source)
        return self._end(made_one)

    def validation(self, op: str, version: str) -> Validation | None:
        """The newest validation of a version's newest attempt."""
        return self._desk.workspace.latest_validation(self._desk.canonical(op), version)

    def bench(
        self,
        op: str,
        *versions: str,
        sizes: Sequence[str] | None = None,
        runs: int = 10,
        dtype: str = "float32",
        against: Sequence[str] = (),
        hot: bool = False,
        timer: TimerName = "gated",
        census: bool = False,
        budget: float | None = None,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Benchmark:
        """How fast? Ten runs a size, every provider in random order, torch beside them.

        Args:
            op: its name or alias.
            versions: none or `all`: every version that passed its validation.
            sizes: of small, medium, large, and shapes of your own (`8192x151936`), which no final
                counts in. None: the three and the shapes that are kept for the op.
            runs: timed runs a size.
            dtype: of the inputs.
            against: whom every version is compared with beside torch: `torch.compile`, a version,
                or `module:function`.
            hot: leave the inputs in the L2 cache.
            timer: `gated`: GPU time behind a gate, net of what the timer adds; `graph`: GPU time in
                a CUDA graph; `launch`: by the host's clock, with Python and launch.
            census: count kernels, streams and Triton's share by CUPTI, in a pass after the timing.
            budget: seconds for rounds that settle a verdict; without a GPU, for all runs.
            seed: of inputs and order.
            timeout: seconds that it may take in all.

        Raises:
            IllegalStep: a version has not passed a validation of this very source.
            BadValue, UnknownName, UnknownVersion: a value out of its range, or an unknown one.
        """
        name = self._desk.canonical(op)
        if sizes is None:
            sizes = (*SIZES, *map(shape_text, self._desk.own_shapes(name)))
        check_sizes(sizes)
        check_runs(runs)
        check_budget(budget)
        if timer not in get_args(TimerName):
            known = get_args(TimerName)
            said = f"unknown timer {timer!r}.{did_you_mean(timer, known)} Known: {', '.join(known)}"
            raise UnknownName(said)
        self._desk.gate("bench", name)
        own, others = providers.rivals(self._desk, name, against)
        kind = self._jobs.engine.device_kind
        sources = providers.to_be_timed(self._desk, name, versions, dtype, kind, rivals=own)
        job = BenchJob(
            op=self._jobs.op_ref(name),
            versions=tuple(self._jobs.version_ref(s) for s in sources),
            sizes=tuple(s for s in dict.fromkeys((*SIZES, *sizes)) if s in sizes),
            runs=runs,
            dtype=dtype,
            against=others,
            rivals=(*own, *others),
            cold=not hot,
            timer=timer,
            census=census,
            seed=seeded(seed),
            budget_s=self.settings.bench_budget_s if budget is None else budget,
            compile_s=self.settings.compile_s,
        )
        longest = max(self.settings.job_s, 2 * job.budget_s) if timeout is None else timeout
        outcome = self._jobs.run(job, "+".join(sorted(s.sha256 for s in sources)), longest)
        made = outcomes.benchmark(outcome, job)
        badges = providers.badges(self._desk, name, sources)
        made = made.model_copy(update={"badges": (*made.badges, *badges)})
        self._desk.record(name, "benchmarked", made)
        return self._end(made)

    def selftest(self, *, timeout: float | None = None) -> SelfTest:
        """Does the timing tell right from wrong on this GPU?

        A kernel against itself must be the same, kernels 2 % and 100 % longer slower; a host that
        is late, and work on a stream of its own, must be left without a time.

        Args:
            timeout: seconds that it may take in all.
        """
        job = SelfTestJob(seed=secrets.randbits(24), compile_s=self.settings.compile_s)
        return self._end(outcomes.selftest(self._jobs.run(job, "", timeout)))

    def benchmark(self, op: str) -> Benchmark | None:
        """The newest benchmark of an op."""
        return self._desk.workspace.latest_benchmark(self._desk.canonical(op))

    def best(
        self,
        op: str,
        version: str | None = None,
        *,
        now: bool = False,
        why: str = "",
        fastest: bool = False,
    ) -> Best:
        """The version to ship, with its code: the smallest final within one benchmark.

        Args:
            op: its name or alias.
            version: chosen by hand instead; it stays chosen as long as it is unchanged and right.
            now: before the workflow's end, with what is known.
            why: the reason for choosing by hand.
            fastest: gives up a choice by hand.

        Raises:
            IllegalStep: not at its end, and not `now`.
            UnknownVersion: no version has passed, or not the one that is named.
            BadValue: a reason without a version, or both `fastest` and a version.
        """
        name = self._desk.canonical(op)
        if why and version is None:
            raise BadValue(f"--why {why!r} needs the version that is chosen: best {name} v2 --why")
        if version and fastest:
            raise BadValue(f"either {version} or --fastest: both choose")
        hand = self._desk.workspace.source(name, version).version if version else None
        sentence = workflow.check("best", self._desk.facts(name), now=now)
        if sentence and not now:
            raise IllegalStep(sentence)
        versions = self._desk.workspace.versions(name)
        if hand or fastest:
            versions = self._marked(name, versions, hand, why)
        chosen = ranked(name, versions, self._desk.workspace.ranking(name))
        best = Best(source=self._desk.workspace.source(name, chosen.version), **chosen.figures)
        self._desk.record(name, "chosen", best)
        return self._remember(best)

    def _marked(
        self, op: str, versions: tuple[VersionState, ...], hand: str | None, why: str
    ) -> tuple[VersionState, ...]:
        """The versions with the one that a person chose marked as such; none: none is."""
        reason = f"chosen by hand: {why}" if why else "chosen by hand"
        if hand and not any(v.version == hand and v.validation is Status.PASSED for v in versions):
            name = f"{op} {short(hand)}"
            raise UnknownVersion(f"{name} has not passed its validation: validate {name}")
        return tuple(
            v.model_copy(update={"by_hand": reason if v.version == hand else None})
            for v in versions
        )
