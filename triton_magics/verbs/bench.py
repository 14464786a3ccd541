"""Time versions beside torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from triton_magics.errors import BadValue
from triton_magics.execution.job_requests import BenchJob, TimerName
from triton_magics.model import (
    FILE_SIZE,
    Badge,
    BadgeCode,
    Benchmark,
    Compilation,
    KernelSource,
    Retiming,
    Status,
    shape_text,
)
from triton_magics.session import Session, outcomes
from triton_magics.session.checks import choose_seed
from triton_magics.verbs import _baselines, _log_files, _retiming
from triton_magics.verbs._arguments import read_shape, split_commas
from triton_magics.verbs._base import Request, Switch, Verb, option, place
from triton_magics.verbs._fields import Budget, Dtype, Hot, Op, Runs, Seed, Timeout

CPU_BUDGET_S = 4.0  # of a benchmark in the interpreter whose sizes are not named


def _shape_word(text: str) -> str:
    return shape_text(read_shape(text))


class BenchRequest(Request):
    """Versions, their inputs, and how they are timed."""

    op: Annotated[Op, place("its name or an alias: softmax, add", names="op", nargs="?")]
    versions: Annotated[
        Sequence[str],
        place(
            "which (default: every one that passed)",
            names="version all",
            metavar="VERSION",
            nargs="*",
            variadic=True,
            doc="which; none or `all`: every one that passed",
        ),
    ] = ()
    sizes: Annotated[
        Sequence[str] | None,
        option(
            "of the op's sizes (small,medium,large) and shapes such as 8192x151936 (default: all "
            "of them, and the shapes that you keep for the op)",
            names="size",
            metavar="SIZES",
            read=split_commas,
        ),
        option(
            "only this one, in place of the sizes: 8192x151936; may be repeated",
            "--shape",
            metavar="NxM",
            read=_shape_word,
        ),
    ] = None
    inputs: Annotated[
        str | None,
        option(
            "a file of the workspace in place of the sizes: x.safetensors, .npz, .npy or .pt",
            metavar="FILE",
        ),
    ] = None
    runs: Annotated[Runs, option("timed runs at each size", metavar="N")] = 10
    dtype: Dtype = None
    against: Annotated[
        Sequence[str],
        option(
            "compare with torch.compile, a version or module:function too; may be repeated",
            names="against version",
            metavar="WHOM",
        ),
    ] = ()
    hot: Hot = False
    timer: Annotated[
        TimerName,
        option(
            "gated: net GPU time behind a gate; graph: in a CUDA graph; launch: with Python and "
            "launch",
            metavar="CLOCK",
        ),
    ] = "gated"
    census: Annotated[
        bool,
        option("afterwards count kernels and streams, and Triton's share of them, by CUPTI"),
    ] = False
    backward_only: Annotated[
        bool,
        option("of softmax_backward: the backward pass, without the forward pass before it"),
    ] = False
    budget: Budget = None
    seed: Seed = None
    timeout: Timeout = None
    again: Annotated[
        bool,
        option("time the recorded versions now; show then against now by the ratios to torch"),
    ] = False
    env: Annotated[
        str | None,
        option(
            "time here and by this interpreter, in turn: has its Triton slowed a version?",
            metavar="PATH/python",
            is_local=True,
        ),
    ] = None


def run(session: Session, request: BenchRequest) -> Benchmark | Retiming:
    """Time versions beside torch, in random-order rounds within one session.

    Without a GPU every version runs once in the interpreter, which says nothing about a GPU.
    `again` and `env` need one, and return a `Retiming`: then and now, or here and there.

    Raises:
        IllegalStep: a version has not passed a validation of this very source.
        BadValue, UnknownName, UnknownVersion: a value out of range, or an unknown name.
    """
    name = session.canonical(request.op)
    _check_options(request)
    if request.env is not None:
        return session.finish(_time_in_both(session, request, name, request.env))
    if request.again:
        _retiming.require_gpu(session)
        recorded = _retiming.recorded_benchmarks(session, name)
        return session.finish(time_again(session, request, recorded))
    return session.finish(time_once(session, request))


def _check_options(request: BenchRequest) -> None:
    """Check that the options go together.

    Raises:
        BadValue: inputs and sizes, or a part of the call and a comparison of whole ones.
    """
    options = {"--sizes or --shape": request.sizes, "--again": request.again, "--env": request.env}
    for option_name, value in options.items():
        if request.inputs is not None and value:
            raise BadValue(f"--inputs is in place of the sizes; it does not go with {option_name}")
    others = {"--again": request.again, "--env": request.env, "--census": request.census}
    for option_name, value in others.items():
        if request.backward_only and value:
            raise BadValue(f"--backward-only does not go with {option_name}, which has both passes")


def time_again(
    session: Session,
    request: BenchRequest,
    recorded: Sequence[_retiming.Recorded],
    *,
    threshold: float = _retiming.THRESHOLD,
    keep: bool = True,
) -> Retiming:
    """Time recorded versions now, and compare them with their record.

    Args:
        session: has the sources.
        request: what to time; without versions, all that were recorded.
        recorded: the benchmarks to compare with, newest first.
        threshold: relative difference that counts as equal.
        keep: add the new times to the log.

    Raises:
        IllegalStep: there is no recorded time.
    """
    name = session.canonical(request.op)
    dtype = request.dtype or session.default_dtype(name)
    versions = request.versions or _retiming.recorded_versions(session, name, dtype, recorded)
    now = time_once(session, request.evolve(versions=versions, again=False), keep=keep)
    return _retiming.compare_with_record(now, recorded, threshold=threshold)


def _time_in_both(session: Session, request: BenchRequest, name: str, python: str) -> Retiming:
    _retiming.require_gpu(session)
    job = _prepare(session, request, name)[0]
    return _retiming.time_in_both(session, job, python)


def time_once(session: Session, request: BenchRequest, *, keep: bool = True) -> Benchmark:
    """Time versions beside torch in one session; `keep`: add it to the log."""
    name = session.canonical(request.op)
    job, sources = _prepare(session, request, name)
    budget = max(session.settings.job_s, 2 * job.budget_s)
    longest = budget if request.timeout is None else request.timeout
    key = "+".join(sorted(s.sha256 for s in sources))
    outcome = session.jobs.manager.run(job, key=key, limits=session.jobs.limits(longest))
    benchmark = outcomes.benchmark(outcome, job)
    badges = _baselines.badges(session, name, sources)
    own = _own_badges(request)
    benchmark = benchmark.evolve(
        badges=(*benchmark.badges, *badges, *own),
        compilations=() if benchmark.on_gpu else _compilations(session, name, sources),
    )
    if keep:
        session.record(name, "benchmarked", benchmark)
        _log_files.write_log_if_set(session, name)
    return benchmark


def _compilations(
    session: Session, op: str, sources: Sequence[KernelSource]
) -> tuple[Compilation, ...]:
    """Return the recorded compilation of each source that compiles."""
    recorded = (session.workspace.compilation(op, source.sha256) for source in sources)
    return tuple(each for each in recorded if each and each.status is Status.PASSED)


def _own_badges(request: BenchRequest) -> tuple[Badge, ...]:
    """Return a badge for each option that gives other times than those of the op's sizes."""
    file = request.inputs and Badge.of(BadgeCode.OWN_INPUTS, file=request.inputs)
    part = request.backward_only and Badge.of(BadgeCode.BACKWARD_ONLY)
    return tuple(badge for badge in (file, part) if badge)


def _prepare(
    session: Session, request: BenchRequest, name: str
) -> tuple[BenchJob, tuple[KernelSource, ...]]:
    """Return the job of a request, and the sources that it times."""
    sizes = (FILE_SIZE,) if request.inputs else _choose_sizes(session, name, request.sizes)
    dtype = request.dtype or session.default_dtype(name)
    session.gate("bench", name)
    own, others = _baselines.resolve_baselines(session, name, request.against)
    sources = _baselines.sources_to_time(
        session, name, request.versions, dtype, session.jobs.device_kind, baselines=own
    )
    job = _job(session, request, sources, sizes=sizes, dtype=dtype, baselines=(own, others))
    return job, sources


def _choose_sizes(session: Session, op: str, sizes: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sizes in the op's order; without any, all of it and the user's own shapes.

    Without a GPU the times rank nothing: only the first size, unless others are named.
    """
    names = tuple(session.facts_of(op).sizes)
    if sizes is None and session.jobs.device_kind != "gpu":
        return names[:1]
    if sizes is None:
        return (*names, *map(shape_text, session.own_shapes(op)))
    session.check_sizes(op, sizes)
    return tuple(s for s in dict.fromkeys((*names, *sizes)) if s in sizes)


def _budget_s(session: Session, request: BenchRequest) -> float:
    """Return the requested seconds, else those of the settings; without a GPU a few are enough."""
    if request.budget is not None:
        return request.budget
    longest = session.settings.bench_budget_s
    if session.jobs.device_kind == "gpu" or request.sizes is not None:
        return longest
    return min(longest, CPU_BUDGET_S)


def _job(
    session: Session,
    request: BenchRequest,
    sources: Sequence[KernelSource],
    *,
    sizes: tuple[str, ...],
    dtype: str,
    baselines: tuple[tuple[str, ...], tuple[str, ...]],
) -> BenchJob:
    own, others = baselines
    settings = session.settings
    return BenchJob(
        op=session.jobs.op_ref(sources[0].op, request.inputs),
        versions=tuple(session.jobs.version_ref(s) for s in sources),
        sizes=sizes,
        op_sizes=tuple(session.facts_of(sources[0].op).sizes),
        runs=request.runs,
        dtype=dtype,
        against=others,
        baselines=(*own, *others),
        cold=not request.hot,
        timer=request.timer,
        census=request.census,
        backward_only=request.backward_only,
        seed=choose_seed(request.seed),
        budget_s=_budget_s(session, request),
        compile_s=settings.compile_s,
    )


VERB = Verb(
    name="bench",
    request=BenchRequest,
    run=run,
    help="Times every version and torch, in random order: means, final, speedup, verdicts.",
    example="%triton_bench softmax v1 v2 --sizes medium,large --against torch.compile",
    rank=50,
    judges=True,
    long_running=True,
    switches=(
        Switch(
            "--selftest",
            "selftest",
            "no op: times kernels of known length and cheats, to check the timing",
            alone=True,
        ),
    ),
)
