"""Try a grid of settings of a version."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from triton_magics import languages
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.execution.job_requests import SweepJob, SweepPoint
from triton_magics.languages import Tunables
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import (
    CaseStatus,
    Configuration,
    KernelSource,
    Setting,
    Status,
    Sweep,
    Validation,
    settings_text,
    short,
    version_name,
)
from triton_magics.session import Session
from triton_magics.session.checks import MAX_BUDGET_S, choose_seed
from triton_magics.verbs import _sweep_jobs, kernel
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
from triton_magics.verbs._search import GridSearch, Point

MAX_CONFIGURATIONS = 256
MAX_SPACE = 10**9  # points of a search
SEARCH_S = 120.0
SEARCHED_SHARE = 0.25  # of the grid, at most
MAX_SOURCES_BYTES = 8 * 2**20


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
            "what to try: BLOCK_SIZE=256,512,1024 num_warps=4,8; every combination is tried",
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
    search: Annotated[
        bool, option("try a part of the grid, chosen by the times so far; for large grids")
    ] = False
    budget: Annotated[
        float, Field(gt=0, le=MAX_BUDGET_S), option("seconds of a search: 120", metavar="S")
    ] = SEARCH_S


def run(session: Session, request: SweepRequest) -> Sweep:
    """Try a grid of settings of a version: which are right, and which is fastest.

    Each point of the grid is the version's source with these values in it. All are compiled in
    parallel and checked one by one, as in a quick validation. The right ones are timed together, in
    random-order rounds with torch. Several GPUs share the points; then the fastest of each, by the
    ratio to torch, are timed together on one. With `search` at most a quarter of the grid is tried,
    within `budget` seconds. The best has passed the full plan. Without a GPU: compiled only.

    Raises:
        UnknownName, BadValue: no such parameter, a value of another kind, too many configurations.
        IllegalStep: `write` or `search`, and nothing can be timed.
    """
    source = session.source(request.op, request.version)
    dtype = request.dtype or session.default_dtype(source.op)
    session.check_dtypes(source.op, (dtype,))
    size = session.choose_size(source.op, request.size, largest=True, shapes=True)
    on_gpu = session.jobs.device_kind == "gpu"
    if request.write and not on_gpu:
        raise IllegalStep("--write takes the fastest one, and without a GPU nothing is timed")
    if request.search and not on_gpu:
        raise IllegalStep("--search follows the times, and without a GPU nothing is timed")
    session.gate("sweep", source.op)
    tunables = _tunables(source)
    grid = _checked_grid(tunables, request.knobs, MAX_SPACE if request.search else None)
    job = SweepJob(
        op=session.jobs.op_ref(source.op),
        version=session.jobs.version_ref(source),
        points=_points(tunables, grid, [()] if request.search else None),
        size=size,
        dtype=dtype,
        runs=request.runs,
        cold=not request.hot,
        seed=choose_seed(request.seed),
        target=None if on_gpu else session.jobs.default_target(),
        compile_s=session.settings.compile_s,
    )
    if request.search:
        sweep = _search(session, job, request, tunables, grid)
    else:
        sweep = _sweep_jobs.run_grid(session, job, request.timeout)
    sweep, validation = _sweep_jobs.validate_best(session, source, job, sweep, tunables)
    sweep = sweep.evolve(standing=tunables.current(request.knobs))
    if request.write and sweep.best and sweep.status is not Status.INTERRUPTED:
        written = _write_best(session, source, sweep, tunables, validation)
        sweep = sweep.evolve(written=written)
    session.record(source.op, "swept", sweep, source=source)
    return session.finish(sweep)


def _write_best(
    session: Session,
    source: KernelSource,
    sweep: Sweep,
    tunables: Tunables,
    validation: Validation | None,
) -> str | None:
    """Save the best one's source as the next version, with its validation.

    Returns:
        The version; None where it is the swept version's own source.
    """
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
    written = kernel.run(session, request).source
    if validation is not None:
        own = validation.evolve(version=written.version, attempt=written.attempt)
        session.record(source.op, "validated", own, source=written)
    return written.version


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


Grid = Mapping[str, Sequence[Setting]]


def _checked_grid(tunables: Tunables, knobs: Grid, most: int | None) -> Grid:
    """Return the values of each setting, once each.

    Raises:
        UnknownName, BadValue: not a tunable parameter or value; none, or too many points.
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
    n, limit = math.prod(len(values) for values in grid.values()), most or MAX_CONFIGURATIONS
    if n > limit:
        sides = " x ".join(str(len(values)) for values in grid.values())
        instead = "name fewer values" if most else "name fewer values, or --search a part of them"
        raise BadValue(f"{sides} = {n} configurations, at most {limit}: {instead}")
    return grid


def _points(
    tunables: Tunables, grid: Grid, chosen: Sequence[Point] | None = None
) -> tuple[SweepPoint, ...]:
    """Return points of the grid by their positions; None: every combination of the values.

    Raises:
        BadValue: the sources are too long.
    """
    every = itertools.product(*grid.values())
    rows = every if chosen is None else (_values(grid, point) for point in chosen if point)
    points = []
    for values in rows:
        settings = dict(zip(grid, values, strict=True))
        code = tunables.apply(settings)
        points.append(SweepPoint(settings=settings, source=code, sha256=sha256_of(code)))
    if sum(len(p.source) for p in points) > MAX_SOURCES_BYTES:
        n = len(points)
        raise BadValue(f"{n} configurations of so long a source are too many: name fewer values")
    return tuple(points)


def _values(grid: Grid, point: Point) -> tuple[Setting, ...]:
    return tuple(values[i] for values, i in zip(grid.values(), point, strict=True))


def _search(
    session: Session, job: SweepJob, request: SweepRequest, tunables: Tunables, grid: Grid
) -> Sweep:
    """Try a part of the grid in batches, on all devices; race the fastest at the end.

    Points of different sessions and GPUs are compared by their ratios to torch.
    """
    deadline = time.monotonic() + request.budget
    sizes = tuple(len(values) for values in grid.values())
    space = math.prod(sizes)
    most = max(int(SEARCHED_SHARE * space), 1)
    search = GridSearch(
        sizes, _start(tunables, grid), seed=job.seed, places=session.jobs.manager.places
    )
    parts: list[Sweep] = []
    while search.tried < most and (not parts or time.monotonic() < deadline):
        points = search.next_points(most - search.tried)
        if not points:
            break
        batch = job.evolve(points=_points(tunables, grid, points))
        parts += _sweep_jobs.run_on_all(session, batch, request.timeout)
        ratios = _sweep_jobs.relative_times(parts)
        tried = {c.label: c for part in parts for c in part.configurations}
        for point in points:
            label = settings_text(dict(zip(grid, _values(grid, point), strict=True)))
            _learn(search, point, tried.get(label), ratios.get(label))
        if any(part.status is Status.INTERRUPTED for part in parts):
            break
    note = f"a search tried {search.tried} of {space} configurations"
    whole = job.evolve(points=_points(tunables, grid, [*search.points]))
    sweep = _sweep_jobs.race(session, whole, parts, request.timeout)
    conditions = (*sweep.conditions, note)
    return sweep.evolve(space=space, knobs=dict(grid), conditions=conditions)


def _learn(
    search: GridSearch, point: Point, result: Configuration | None, relative: float | None
) -> None:
    """Add the result of a point to a search; `relative`: its time over torch's."""
    if result is not None and relative is not None and result.status is CaseStatus.PASSED:
        search.times[point] = relative
        return
    reason = (result.reason or "") if result else ""
    refused = result is not None and (not result.can_launch or "OutOfResources" in reason)
    (search.refused if refused else search.failed).add(point)


def _start(tunables: Tunables, grid: Grid) -> Point:
    """Return the position of the version's own settings; of a value outside the grid the middle."""
    own = tunables.current(grid)
    return tuple(
        list(values).index(own[name]) if own.get(name) in values else len(values) // 2
        for name, values in grid.items()
    )


VERB = Verb(
    name="sweep",
    request=SweepRequest,
    run=run,
    help="Compiles, checks and times a version at every point of a grid of settings.",
    example="%triton_sweep matmul v1 BLOCK_M=64,128 num_warps=4,8 --write",
    rank=60,
    judges=True,
    long_running=True,
)
