"""The jobs of a sweep: a share for each device, a race of the fastest, a full plan."""

from __future__ import annotations

from collections.abc import Sequence

from triton_magics.execution.job_requests import SweepJob
from triton_magics.execution.protocol import Progress
from triton_magics.languages import Tunables
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import (
    CaseStatus,
    Configuration,
    KernelSource,
    Status,
    Sweep,
    Validation,
    settings_text,
)
from triton_magics.session import Session, outcomes
from triton_magics.session.concurrent_calls import run_concurrently
from triton_magics.verbs import validate

MAX_LOST = 5  # configurations that may end their process before the sweep stops
MIN_SHARE = 4  # points of a device
FINALISTS = 4  # of each device, that are timed together at the end
MAX_CANDIDATES = 4  # full plans for the best one
_LOST = (Status.TIMEOUT, Status.CRASHED, Status.OUT_OF_MEMORY)


def run_grid(session: Session, job: SweepJob, timeout: float | None) -> Sweep:
    """Run every point, each on one of the devices; race the fastest of several sessions."""
    return race(session, job, run_on_all(session, job, timeout), timeout)


def run_on_all(session: Session, job: SweepJob, timeout: float | None) -> list[Sweep]:
    """Share the points among the devices; return a sweep of each share."""
    manager = session.jobs.manager
    n = max(min(manager.places, len(job.points) // MIN_SHARE), 1)
    if n == 1:
        return [_run_share(session, job, timeout)]
    shares = [job.evolve(points=job.points[i::n]) for i in range(n)]
    steps: dict[int, Progress] = {}

    def report(position: int, step: Progress) -> None:
        steps[position] = step
        if step.total:
            alike = [s for s in steps.values() if s.stage == step.stage]
            done, total = (sum(getattr(s, name) or 0 for s in alike) for name in ("done", "total"))
            step = step.evolve(done=done, total=total)
        manager.report(step)

    calls = [
        lambda is_stopped, share=share: _run_share(session, share, timeout) for share in shares
    ]
    ended = dict(run_concurrently(manager, calls, at_once=n, on_progress=report))
    return [ended[i] for i in range(n)]


def _run_share(session: Session, job: SweepJob, timeout: float | None) -> Sweep:
    """Run a job, again without a configuration that ended its process, or broke the GPU.

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


def relative_times(parts: Sequence[Sweep]) -> dict[str, float]:
    """Return the time of each right configuration over torch's in its session, by its label.

    Where torch has no time in a session: microseconds.
    """
    torch = all(part.torch for part in parts)
    return {
        c.label: c.timing.mean_us / (part.torch.mean_us if torch and part.torch else 1.0)
        for part in parts
        for c in part.configurations
        if c.timing and c.status is CaseStatus.PASSED
    }


def race(session: Session, job: SweepJob, parts: Sequence[Sweep], timeout: float | None) -> Sweep:
    """Return one sweep of several sessions; the fastest of all are timed together, on one GPU.

    Args:
        session: runs the race.
        job: the whole sweep.
        parts: of its points, each from one session.
        timeout: seconds; None: the settings'.
    """
    if len(parts) == 1:
        return parts[0]
    every = {c.label: c for part in parts for c in part.configurations}
    gpus = {part.environment.gpu_uuid for part in parts if part.environment}
    ratios = relative_times(parts)
    fastest = sorted(ratios, key=ratios.__getitem__)[: FINALISTS * len(gpus or {None})]
    ended = {part.status: part for part in parts}
    if stopped := ended.get(Status.INTERRUPTED):
        return stopped.evolve(configurations=_in_order(job, every))
    if not fastest:  # nothing is timed without a GPU
        whole = ended.get(Status.PASSED, parts[0])
        return whole.evolve(configurations=_in_order(job, every))
    points = tuple(p for p in job.points if settings_text(p.settings) in fastest)
    last = _run_share(session, job.evolve(points=points), timeout)
    every |= {c.label: c for c in last.configurations}
    where = f" on {len(gpus)} GPUs" if len(gpus) > 1 else ""
    note = (
        f"first timed in {len(parts)} sessions{where}, compared by the ratios to torch; "
        f"the fastest {len(points)} timed again together"
    )
    return last.evolve(
        configurations=_in_order(job, every),
        raced=tuple(c.label for c in last.configurations if c.timing),
        conditions=(*last.conditions, note),
    )


def _in_order(job: SweepJob, every: dict[str, Configuration]) -> tuple[Configuration, ...]:
    labels = [settings_text(p.settings) for p in job.points]
    return tuple(every[label] for label in labels if label in every)


def validate_best(
    session: Session, source: KernelSource, job: SweepJob, sweep: Sweep, tunables: Tunables
) -> tuple[Sweep, Validation | None]:
    """Check the best configuration by the full plan; if that fails it, the next one.

    Returns:
        The sweep, whose best has passed, and its validation; None without a time.
    """
    for _ in range(MAX_CANDIDATES):
        best = sweep.best
        if best is None or sweep.status is Status.INTERRUPTED:
            return sweep, None
        validation = _validate(session, source, job, tunables.apply(best.settings))
        if validation.status is Status.INTERRUPTED:
            return sweep.evolve(status=Status.INTERRUPTED, lost=validation.lost), None
        if validation.passed:
            return sweep.evolve(best_cases=len(validation.cases)), validation
        sweep = _without(sweep, best, validation)
    return sweep, None


def _validate(session: Session, source: KernelSource, job: SweepJob, code: str) -> Validation:
    request = validate.ValidateRequest(op=source.op, version=source.version)
    header, sha256 = "\n" * job.version.header_lines, sha256_of(code)
    version = job.version.evolve(source=header + code, sha256=sha256)
    whole = validate.job_of(session, request, source).evolve(version=version, seed=job.seed)
    outcome = session.jobs.manager.run(whole, key=sha256, limits=session.jobs.limits())
    return outcomes.validation(outcome, whole)


def _without(sweep: Sweep, best: Configuration, validation: Validation) -> Sweep:
    """Return the sweep after its best one has failed the full plan."""
    first = next(iter(validation.failed_cases), None)
    status = first.status if first else CaseStatus.RUNTIME_ERROR
    why = (
        f"{first.case.label}: {first.reason or status.replace('_', ' ')}"
        if first
        else validation.message
    )
    failed = best.evolve(status=status, reason=f"the full plan failed it: {why}", comparison=None)
    # The others were compared with it.
    rest = [c.evolve(comparison=None) for c in sweep.configurations if c is not best]
    every = {c.label: c for c in (*rest, failed)}
    configurations = tuple(every[c.label] for c in sweep.configurations)
    if any(c.timing and c.status is CaseStatus.PASSED for c in rest):
        return sweep.evolve(configurations=configurations)
    message = "the full plan failed each configuration that was timed"
    return sweep.evolve(configurations=configurations, status=Status.FAILED, message=message)


__all__ = ["race", "relative_times", "run_grid", "run_on_all", "validate_best"]
