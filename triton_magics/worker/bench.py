"""How fast are these versions, beside torch?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, BenchJob
from triton_magics.model import Benchmark, Census, NotTimed, Status, shape_text
from triton_magics.worker import conditions, interpreted
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.ceilings import Ceilings, ceilings
from triton_magics.worker.census import Profile, census, profiled
from triton_magics.worker.graph_timer import GraphTimer
from triton_magics.worker.launch_timer import LaunchTimer
from triton_magics.worker.load import (
    Loaded,
    LoadError,
    UserFault,
    compile_cache,
    explain,
    in_short,
    load_op,
    load_version,
)
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.pretend import pretending
from triton_magics.worker.providers import COMPILE, load_compiler, providers, rival
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.rounds import Session, all_sizes, why
from triton_magics.worker.slots import case_of
from triton_magics.worker.timers import GatedTimer, Gauged, Watch, no_garbage_collection
from triton_magics.worker.torch_settings import TorchSettings

TIMERS = {"gated": GatedTimer, "graph": GraphTimer, "launch": LaunchTimer}
_GAUGED: dict[tuple[str, bool], Gauged] = {}
META = torch.device("meta")
MEDDLED = "{} changes torch's settings; they were put back"
RAW = "raw times: CUPTI could not tell what the timer adds"


def run(job: BenchJob, report: Reporter) -> tuple[Answer, bool]:
    """The whole benchmark, in the interpreter where there is no GPU."""
    started = time.monotonic()
    device = this_device()
    report.environment(environment())
    op = load_op(job.op)
    if job.dtype not in op.dtypes:
        raise UserFault(f"{op.name} has no dtype {job.dtype!r}; it declares {', '.join(op.dtypes)}")
    base = _base(job)
    report.stage("loading")
    for name in job.against:
        rival(name, op)  # refused before anything is timed
    check_sizes(op, job.sizes, job.dtype, job.seed)
    settings = TorchSettings()
    with pretending(device):
        versions, missing = _loaded(job)
    if not versions:
        return _ended(base.model_copy(update={"not_timed": missing}), started), True
    if device.type == "cpu":
        filled = interpreted.run(job, op, versions, base, report)
        return _ended(filled, started, missing), bool(missing)
    if COMPILE in job.against:
        report.stage("loading torch.compile", patience_s=job.compile_s)
        load_compiler()
    what = f"timing {job.op.name}"
    uuid = environment().gpu_uuid
    known = ceilings(environment(), report)
    with gpu_lock(uuid, alone=True, what=what, waiting=report.waiting), compile_cache(job.versions):
        report.stage("gauging the timer", patience_s=60)
        if settings.put_back():
            base = base.model_copy(update={"badges": (MEDDLED.format("a version's import"),)})
        filled = base.model_copy(update=measure(job, op, versions, report, known=known))
        filled = filled.model_copy(update={"badges": (*base.badges, *filled.badges)})
    spoiled = filled.status is not Status.PASSED or job.census or bool(missing)
    return _ended(filled, started, missing), spoiled


def _loaded(job: BenchJob) -> tuple[tuple[Loaded, ...], tuple[NotTimed, ...]]:
    """The versions that can be imported, and why the others have no time."""
    loaded: list[Loaded] = []
    missing: list[NotTimed] = []
    for ref in job.versions:
        try:
            loaded.append(load_version(ref))
        except LoadError as error:
            reason = f"can't be imported: {in_short(explain(error, ref))}"
            missing += [NotTimed(size=s, provider=ref.version, reason=reason) for s in job.sizes]
    return tuple(loaded), tuple(missing)


def check_sizes(op: ops.Op, sizes: Sequence[str], dtype: str, seed: int) -> None:
    """Every shape of the caller's own is one that the op makes inputs of.

    Raises:
        UserFault: one is not.
    """
    for size in sizes:
        case = case_of(op, size, dtype, seed)
        if size in op.sizes:
            continue
        try:
            op.make_inputs(case.shape, getattr(torch, dtype), META, torch.Generator())
        except Exception as error:
            known = ", ".join(f"{name} {shape_text(s)}" for name, s in op.sizes.items())
            raise UserFault(
                f"{op.name} makes no inputs of shape {size} ({error}); its sizes: {known}"
            ) from error


def _ended(benchmark: Benchmark, started: float, missing: tuple[NotTimed, ...] = ()) -> Benchmark:
    duration_s = time.monotonic() - started
    not_timed = (*benchmark.not_timed, *missing)
    return benchmark.model_copy(update={"duration_s": duration_s, "not_timed": not_timed})


def _base(job: BenchJob) -> Benchmark:
    return Benchmark(
        op=job.op.name,
        status=Status.FAILED,
        versions=tuple(v.version for v in job.versions),
        sha256s=tuple(v.sha256 for v in job.versions),
        providers=("torch", *(v.version for v in job.versions), *job.against),
        sizes=job.sizes,
        runs=job.runs,
        dtype=job.dtype,
        against=job.rivals,
        cold=job.cold,
        clock=environment().device_kind,
        environment=environment(),
        seed=job.seed,
    )


# ------------------------------------------------------------------------------------ on a GPU


def measure(
    job: BenchJob,
    op: ops.Op,
    versions: tuple[Loaded, ...],
    report: Reporter,
    *,
    known: Ceilings | None,
) -> dict[str, Any]:
    """Everything that a benchmark says after its GPU was asked; `known`: that GPU's ceilings."""
    watch = gauged(job, job.timer, known)
    session = Session(
        job=job,
        op=op,
        providers=providers(job, op, versions),
        watch=watch,
        report=report,
        deadline=time.monotonic() + job.budget_s,
        fall_back=lambda: gauged(job, "gated", known),
    )
    own_us = _own_us(job, known)
    update: dict[str, Any] = {
        "clock": watch.timer.clock,
        "floor_us": watch.floor_us,
        "tick_us": watch.tick_us,
        "timer_us": watch.added_us,
        "empty_kernel_us": own_us.get("empty") if job.timer == "gated" else None,
        "copy_gbps": known.copy_gbps if known else None,
        "matmul_tflops": known.matmul_tflops if known else {},
        "ceilings_measured": known.measured if known else None,
        "badges": () if own_us or job.timer != "gated" else (RAW,),
    }
    library, uuid = conditions.nvml(), environment().gpu_uuid
    before = conditions.read(library, uuid)
    with torch.no_grad(), no_garbage_collection():
        update |= all_sizes(session)
        if job.census:
            update["census"] = censuses(session)
    meddled = tuple(MEDDLED.format(name) for name in sorted(session.meddlers))
    badges, notes = conditions.told(before, conditions.read(library, uuid))
    badges = (*update["badges"], *meddled, *session.keepers, *badges)
    return {**update, "badges": badges, "conditions": (*update["conditions"], *notes)}


def _own_us(job: BenchJob, known: Ceilings | None) -> dict[str, float]:
    """The tiny kernels' own times, with the caches as they will be."""
    if known is None:
        return {}
    return known.cold if job.cold else known.hot


def gauged(job: BenchJob, name: str, known: Ceilings | None) -> Watch:
    """A timer by its name, gauged in this process; net where the ceilings are known.

    What it adds stays the same in a process, so it is gauged once, and no benchmark has another
    figure for it than the one before.
    """
    timer = TIMERS[name](environment().l2_bytes or 64 * 2**20, cold=job.cold)
    own_us = _own_us(job, known) if name == "gated" else {}
    found = _GAUGED.get((name, job.cold)) or timer.gauged(own_us)
    if known:  # in a rehearsal others may use the GPU
        _GAUGED[name, job.cold] = found
    return Watch(timer, found.added_us, found.tick_us, found.floor_us)


def censuses(session: Session, profile: Profile = profiled) -> tuple[Census, ...]:
    """The kernels of everyone's call at the largest size, the control left out."""
    size = session.job.sizes[-1]
    session.report.stage("counting kernels", patience_s=60)
    case = case_of(session.op, size, session.job.dtype, session.job.seed)
    given = make_pristine(session.op, case, this_device())
    made = []
    for provider in session.providers[:-1]:
        try:
            act = partial(provider.call, *given)
            made.append(census(provider.name, size, act, profile=profile))
        except BaseException as error:  # noqa: BLE001 (it has no time at this size either)
            made.append(Census(provider=provider.name, size=size, note=why(provider, error)))
    return tuple(made)


__all__ = ["measure", "run"]
