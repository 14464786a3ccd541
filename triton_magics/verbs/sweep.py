"""Try a grid of settings of a version."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from triton_magics import languages
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.execution.job_requests import SweepJob, SweepPoint
from triton_magics.languages import Tunables
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import (
    Configuration,
    KernelSource,
    Setting,
    Status,
    Sweep,
    short,
    version_name,
)
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs import kernel
from triton_magics.verbs._arguments import read_knob
from triton_magics.verbs._base import Request, Verb, option, place
from triton_magics.verbs._fields import (
    Dtype,
    Hot,
    Op,
    Runs,
    Seed,
    SizeOrShape,
    Timeout,
    Version,
)

MAX_CONFIGURATIONS = 256
MAX_SOURCES_BYTES = 8 * 2**20
MAX_LOST = 5  # configurations that may end their process before the sweep stops
_LOST = (Status.TIMEOUT, Status.CRASHED, Status.OUT_OF_MEMORY)


def _grid(knobs: list[tuple[str, tuple[Setting, ...]]]) -> dict[str, tuple[Setting, ...]]:
    """Return the values of each name.

    Raises:
        BadValue: a name occurs twice.
    """
    grid: dict[str, tuple[Setting, ...]] = {}
    for name, values in knobs:
        if name in grid:
            both = ",".join(map(str, (*grid[name], *values)))
            raise BadValue(f"{name} is named twice: write {name}={both}")
        grid[name] = values
    return grid


class SweepRequest(Request):
    """A version, the grid of its settings, and how they are timed."""

    op: Op
    version: Version
    knobs: Annotated[
        Mapping[str, Sequence[Setting]],
        place(
            "what to try: BLOCK_SIZE=256,512,1024 num_warps=4,8; every combination is",
            names="knob",
            metavar="NAME=VALUES",
            nargs="*",
            read=read_knob,
            join=_grid,
            doc="name -> values: constants at module level, literal arguments of a launch, "
            "`num_warps` and the like, constants of an `@triton.autotune` configuration",
        ),
    ] = {}
    size: SizeOrShape = None
    dtype: Dtype = None
    runs: Runs = 10
    hot: Hot = False
    write: Annotated[bool, option("make the best one a new version")] = False
    seed: Seed = None
    timeout: Timeout = None


def run(session: Session, request: SweepRequest) -> Sweep:
    """Try a grid of settings of a version: which are right, and which is fastest.

    Each point of the grid is the version's source with these values in it. All are compiled in
    parallel and checked one by one, as in a quick validation. The right ones are timed together, in
    random-order rounds with torch. Without a GPU: compiled only.

    Raises:
        UnknownName, BadValue: no such parameter, a value of another kind, too many configurations.
        IllegalStep: `write`, and nothing was timed.
    """
    source = session.source(request.op, request.version)
    dtype = request.dtype or session.default_dtype(source.op)
    session.check_dtypes(source.op, (dtype,))
    size = session.choose_size(source.op, request.size, largest=True, shapes=True)
    on_gpu = session.jobs.device_kind == "gpu"
    if request.write and not on_gpu:
        raise IllegalStep("--write takes the fastest one, and without a GPU nothing is timed")
    session.gate("sweep", source.op)
    tunables = _tunables(source)
    job = SweepJob(
        op=session.jobs.op_ref(source.op),
        version=session.jobs.version_ref(source),
        points=_points(tunables, request.knobs),
        size=size,
        dtype=dtype,
        runs=request.runs,
        cold=not request.hot,
        seed=choose_seed(request.seed),
        target=None if on_gpu else session.jobs.default_target(),
        compile_s=session.settings.compile_s,
    )
    sweep = _run_all(session, job, request.timeout)
    sweep = sweep.evolve(standing=tunables.current(request.knobs))
    if request.write and sweep.best:
        sweep = sweep.evolve(written=_write_best(session, source, sweep, tunables))
    session.record(source.op, "swept", sweep, source=source)
    return session.finish(sweep)


def _run_all(session: Session, job: SweepJob, timeout: float | None) -> Sweep:
    """Run the sweep again without a configuration that ended its process, or broke the GPU.

    The figures of the others are then of one session.
    """
    lost: list[Configuration] = []
    while True:
        outcome = session.jobs.manager.run(job, limits=session.jobs.limits(timeout))
        sweep = outcomes.sweep(outcome, job)
        if sweep.status not in _LOST or len(lost) >= MAX_LOST:
            break
        tried = (c for c in sweep.configurations if c.settings == sweep.culprit)
        culprit = next(tried, None)
        if culprit is None:
            break
        lost.append(culprit)
        left = tuple(p for p in job.points if p.settings != culprit.settings)
        if not left:
            break
        job = job.evolve(points=left)
    every = {c.label: c for c in (*lost, *sweep.configurations)}
    return sweep.evolve(configurations=tuple(every.values()))


def _write_best(
    session: Session, source: KernelSource, sweep: Sweep, tunables: Tunables
) -> str | None:
    """Save the best one's source as the next version; None where it is the version's own."""
    assert sweep.best is not None
    code = tunables.apply(sweep.best.settings)
    if code == source.source:
        return None
    every = session.workspace.versions(source.op)
    number = max(int(short(v.version)[1:]) for v in every) + 1
    request = kernel.KernelRequest(
        op=source.op,
        version=version_name(number, "swept"),
        source=code,
        entry=source.entry,
        type=source.language,
        technique=f"{short(source.version)} with {sweep.best.label}, the best of a sweep",
    )
    return kernel.run(session, request).source.version


def _tunables(source: KernelSource) -> Tunables:
    """Return the tunable parameters of a version.

    Raises:
        BadValue: its language has none.
    """
    language = languages.get(source.language)
    tunables = language.tunables(source.source)
    if tunables is None:
        raise BadValue(
            f"{source.op} {short(source.version)}: {language.title} versions have no tunable "
            "parameters. Write one version for each setting and run bench on all of them"
        )
    return tunables


def _points(tunables: Tunables, knobs: Mapping[str, Sequence[Setting]]) -> tuple[SweepPoint, ...]:
    """Return the grid: every combination of the values.

    Raises:
        UnknownName, BadValue: not a tunable parameter or value; none, or too many.
    """
    if not knobs:
        parameters = ", ".join(
            name if knob.value is None else f"{name} ({knob.value!r})"
            for name, knob in tunables.knobs.items()
        )
        raise BadValue(
            f"name what to try: BLOCK_SIZE=256,512 num_warps=4,8; here: {parameters or 'none'}"
        )
    grid = {name: tuple(dict.fromkeys(values)) for name, values in knobs.items()}
    for name, values in grid.items():
        if not values:
            raise BadValue(f"{name}: name its values, {name}=256,512")
        for value in values:
            tunables.check(name, value)
    n = math.prod(len(values) for values in grid.values())
    if n > MAX_CONFIGURATIONS:
        sides = " x ".join(str(len(values)) for values in grid.values())
        raise BadValue(
            f"{sides} = {n} configurations, at most {MAX_CONFIGURATIONS}: name fewer values"
        )
    points = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        code = tunables.apply(settings)
        points.append(SweepPoint(settings=settings, source=code, sha256=sha256_of(code)))
    if sum(len(p.source) for p in points) > MAX_SOURCES_BYTES:
        raise BadValue(f"{n} configurations of so long a source are too many: name fewer values")
    return tuple(points)


VERB = Verb(
    name="sweep",
    request=SweepRequest,
    run=run,
    help="Compiles, checks and times a version at every point of a grid of settings.",
    example="%triton_sweep softmax v2 BLOCK_SIZE=256,512,1024 num_warps=4,8 --write",
    rank=60,
    judges=True,
    long_running=True,
)
