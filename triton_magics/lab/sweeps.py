"""The verb that tries a grid of settings of a version."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from triton_magics.engine.protocol import SweepJob, SweepPoint
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.lab import outcomes
from triton_magics.lab.checks import check_runs, check_sizes, seeded
from triton_magics.lab.versions import Versions
from triton_magics.model import (
    CaseStatus,
    Configuration,
    KernelSource,
    Setting,
    Status,
    Sweep,
    short,
    version_name,
)
from triton_magics.workspace.knobs import DEFAULTS, Source
from triton_magics.workspace.source import sha256_of

MAX_CONFIGURATIONS = 256
MAX_SOURCES_BYTES = 8 * 2**20
MAX_LOST = 5  # configurations that may end their process before the sweep gives up
_LOST = {
    Status.TIMEOUT: CaseStatus.TIMEOUT,
    Status.CRASHED: CaseStatus.CRASHED,
    Status.OUT_OF_MEMORY: CaseStatus.OUT_OF_MEMORY,
}


class Sweeps(Versions):
    """Grids of settings."""

    def sweep(
        self,
        op: str,
        version: str,
        knobs: Mapping[str, Sequence[Setting]],
        *,
        size: str = "large",
        dtype: str = "float32",
        runs: int = 10,
        hot: bool = False,
        write: bool = False,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> Sweep:
        """Which settings of a version are right, and which is fastest?

        Each point of the grid is the version's source with these values in it. All are compiled in
        parallel, checked one by one as a quick validation does, and those that are right timed
        together, in random-order rounds with torch. Without a GPU: compiled only.

        Args:
            op, version: which.
            knobs: name -> values: constants at module level, literal arguments of a launch,
                `num_warps` and the like, constants of an `@triton.autotune` configuration.
            size: at which they are timed: small, medium, large, or a shape (`8192x151936`).
            dtype: of the inputs.
            runs: timed runs of each.
            hot: leave the inputs in the L2 cache.
            write: the best one becomes a new version.
            seed: of inputs and order.
            timeout: seconds that each attempt at the sweep may take.

        Raises:
            UnknownName, BadValue: no such knob, a value of another kind, too many configurations.
            IllegalStep: `write`, and nothing was timed.
        """
        source = self._desk.source(op, version)
        check_sizes((size,))
        check_runs(runs)
        self._desk.check_dtypes(source.op, (dtype,))
        on_gpu = self._jobs.engine.device_kind == "gpu"
        if write and not on_gpu:
            raise IllegalStep("--write takes the fastest one, and without a GPU nothing is timed")
        self._desk.gate("sweep", source.op)
        text = Source(source.source)
        job = SweepJob(
            op=self._jobs.op_ref(source.op),
            version=self._jobs.version_ref(source),
            points=_points(text, knobs),
            size=size,
            dtype=dtype,
            runs=runs,
            cold=not hot,
            seed=seeded(seed),
            target=None if on_gpu else self._jobs.default_target(),
            compile_s=self.settings.compile_s,
        )
        made = self._swept(job, timeout)
        made = made.model_copy(update={"standing": _standing(text, knobs)})
        if write and made.best:
            made = made.model_copy(update={"written": self._write_best(source, made, text)})
        self._desk.record(source.op, "swept", made, source=source)
        return self._end(made)

    def _swept(self, job: SweepJob, timeout: float | None) -> Sweep:
        """The sweep; who ends its process, or breaks the GPU for it, is left out of a second one.

        What is told of the others, then, is of one session.
        """
        lost: list[Configuration] = []
        while True:
            outcome = self._jobs.run(job, "", timeout)
            made = outcomes.sweep(outcome, job)
            if made.status not in _LOST or len(lost) >= MAX_LOST:
                break
            culprit = next((c for c in made.configurations if _ended_it(c, made)), None)
            if culprit is None:
                break
            lost.append(culprit)
            left = tuple(p for p in job.points if p.settings != culprit.settings)
            if not left:
                break
            job = job.model_copy(update={"points": left})
        found = {c.label: c for c in (*lost, *made.configurations)}
        return made.model_copy(update={"configurations": tuple(found.values())})

    def _write_best(self, source: KernelSource, made: Sweep, text: Source) -> str | None:
        """The best one's source as the next version; None where it is the version's own."""
        assert made.best is not None
        code = text.turned(made.best.settings)
        if code == source.source:
            return None
        every = self._desk.workspace.versions(source.op)
        number = max(int(short(v.version)[1:]) for v in every) + 1
        written = self.write(
            source.op,
            version_name(number, "swept"),
            code,
            entry=source.entry,
            technique=f"{short(source.version)} with {made.best.label}, the best of a sweep",
        )
        return written.source.version

    def knobs(self, op: str, version: str) -> dict[str, Setting | None]:
        """What of a version can be swept, with what is written there; None: nothing is."""
        source = self._desk.workspace.source(self._desk.canonical(op), version)
        return {name: knob.value for name, knob in Source(source.source).knobs.items()}


def _standing(text: Source, knobs: Iterable[str]) -> dict[str, Setting]:
    """The settings as the version has them; what is written nowhere is Triton's default."""
    found = {name: text.knobs[name] for name in knobs}
    known = {
        name: DEFAULTS.get(name) if knob.value is None and not knob.written else knob.value
        for name, knob in found.items()
    }
    return {name: value for name, value in known.items() if value is not None}


def _points(text: Source, knobs: Mapping[str, Sequence[Setting]]) -> tuple[SweepPoint, ...]:
    """The grid, every combination of the values.

    Raises:
        UnknownName, BadValue: a name or a value that can't be turned; none, or too many.
    """
    if not knobs:
        can = ", ".join(
            name if knob.value is None else f"{name} ({knob.value!r})"
            for name, knob in text.knobs.items()
        )
        raise BadValue(f"name what to try: BLOCK_SIZE=256,512 num_warps=4,8; here: {can or 'none'}")
    grid = {name: tuple(dict.fromkeys(values)) for name, values in knobs.items()}
    for name, values in grid.items():
        if not values:
            raise BadValue(f"{name}: name its values, {name}=256,512")
        for value in values:
            text.checked(name, value)
    n = math.prod(len(values) for values in grid.values())
    if n > MAX_CONFIGURATIONS:
        sides = " x ".join(str(len(values)) for values in grid.values())
        raise BadValue(
            f"{sides} = {n} configurations, at most {MAX_CONFIGURATIONS}: name fewer values"
        )
    made = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        code = text.turned(settings)
        made.append(SweepPoint(settings=settings, source=code, sha256=sha256_of(code)))
    if sum(len(p.source) for p in made) > MAX_SOURCES_BYTES:
        raise BadValue(f"{n} configurations of so long a source are too many: name fewer values")
    return tuple(made)


def _ended_it(configuration: Configuration, made: Sweep) -> bool:
    """Whether this one ended the process, or broke the GPU for it."""
    if configuration.status is _LOST.get(made.status):
        return True
    named = made.message and made.message.startswith(f"{configuration.label} left the GPU")
    return bool(named)
