"""Recorded sources timed again: comparisons of then with now, and of two environments."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from triton_magics import stats
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.execution import LocalExecutor
from triton_magics.execution.job_requests import BenchJob
from triton_magics.model import Benchmark, Environment, Retiming, SpeedChange, Status, Verb
from triton_magics.next_step import NextStep
from triton_magics.session import Session, outcomes
from triton_magics.session.job_manager import JobManager
from triton_magics.stats import Interval

THRESHOLD = 0.05  # of a process against another one, days apart
ENVIRONMENT_THRESHOLD = 0.03  # of sessions in turn on the same GPU
_CONFIDENCE = 0.95
# Importing the package by name would reach the notebook layer.
VERSION = sys.modules["triton_magics"].__version__
_BENCHMARKED: tuple[Verb, ...] = ("benchmarked",)
_FIND_PACKAGES = (
    "import json, sys; from importlib.metadata import version; import triton_magics, torch.version;"
    " print(json.dumps([triton_magics.__version__, list(sys.version_info[:2])]))"
)


class Recorded(NamedTuple):
    """A benchmark of the log, and its moment."""

    time: str
    benchmark: Benchmark


def recorded_benchmarks(session: Session, op: str) -> tuple[Recorded, ...]:
    """Return every benchmark of whole calls on a GPU in the log of an op, newest first."""
    events = session.workspace.events(op, verbs=_BENCHMARKED, newest_first=True)
    results = ((event.time, event.result) for event in events)
    return tuple(
        Recorded(time, result)
        for time, result in results
        if isinstance(result, Benchmark) and result.on_gpu and result.passed and result.is_whole
        if result.environment
    )


def recorded_versions(
    session: Session, op: str, dtype: str, recorded: Sequence[Recorded]
) -> tuple[str, ...]:
    """Return the versions whose present source has a recorded time in a dtype.

    Raises:
        IllegalStep: there is none.
    """
    timed = {
        pair
        for _, b in recorded
        if b.dtype == dtype
        for pair in zip(b.versions, b.sha256s, strict=True)
    }
    every = [session.source(op, v) for v in session.every_version(op)] if timed else []
    names = tuple(s.version for s in every if (s.version, s.sha256) in timed)
    if not names:
        raise IllegalStep(
            f"{op}: no time of a GPU is recorded for the sources as they are, in {dtype}.",
            next_step=NextStep("bench", {"op": op}),
        )
    return names


def require_gpu(session: Session) -> None:
    """Raise IllegalStep without a GPU: times of the interpreter can't be compared."""
    if session.jobs.device_kind != "gpu":
        raise IllegalStep("times are compared on a GPU only, and there is none here")


# --------------------------------------------------------------------------------- then and now


def compare_with_record(
    now: Benchmark, recorded: Sequence[Recorded], *, threshold: float = THRESHOLD
) -> Retiming:
    """Compare a benchmark with the recorded times of the same sources, by the ratios to torch.

    The newest record of another environment is compared; without one the newest record. Records
    of another GPU are not compared.

    Args:
        now: the new times.
        recorded: of the log before it, newest first.
        threshold: relative difference that counts as equal.
    """
    changes: list[SpeedChange] = []
    not_compared: dict[str, str] = {}
    for version, sha256 in zip(now.versions, now.sha256s, strict=True):
        then = _record_of(now, version, sha256, recorded)
        if isinstance(then, str):
            not_compared[version] = then
            continue
        changes += _changes([then.benchmark], [now], version, then.time, threshold, basis="torch")
    return _retiming(now, changes, not_compared)


def _record_of(
    now: Benchmark, version: str, sha256: str, recorded: Sequence[Recorded]
) -> Recorded | str:
    """Return the record to compare with, or the reason why there is none."""
    same = [
        r
        for r in recorded
        if r.benchmark.dtype == now.dtype
        and r.benchmark.cold == now.cold
        and r.benchmark.clock == now.clock
        and (version, sha256) in zip(r.benchmark.versions, r.benchmark.sha256s, strict=True)
    ]
    if not same:
        return "no recorded time of this source, dtype and timer"
    here = now.environment
    gpus = [r for r in same if here and _environment(r).device == here.device]
    if not gpus:
        other = ", ".join(dict.fromkeys(_environment(r).device for r in same))
        return f"recorded on {other} only, which is another GPU"
    others = [r for r in gpus if here and _key(_environment(r)) != _key(here)]
    return (others or gpus)[0]


def _environment(record: Recorded) -> Environment:
    assert record.benchmark.environment is not None
    return record.benchmark.environment


def _key(environment: Environment) -> tuple[str | None, ...]:
    return (environment.device, environment.driver, environment.torch, environment.triton)


def _changes(
    then: Sequence[Benchmark],
    now: Sequence[Benchmark],
    version: str,
    recorded: str,
    threshold: float,
    *,
    basis: str,
) -> Iterator[SpeedChange]:
    """Yield the change of a version at each size that both have, from one or more sessions each."""
    first, last = then[0], now[-1]
    assert first.environment is not None
    for size in last.sizes:
        sessions = [_session(b, version, size, basis) for b in (*then, *now)]
        if any(s is None for s in sessions):
            continue
        measured = [s for s in sessions if s is not None]
        before, after = measured[: len(then)], measured[len(then) :]
        shortest = min(s.us for s in measured)
        tick = max((b.tick_us or 0.0) for b in (*then, *now)) / shortest
        change = change_of([s.speed for s in before], [s.speed for s in after])
        limit = threshold + tick
        yield SpeedChange(
            version=version, size=size, recorded=recorded, then=first.environment,
            sha256=dict(zip(last.versions, last.sha256s, strict=True))[version],
            then_us=_mean(s.us for s in before), now_us=_mean(s.us for s in after),
            torch_then_us=_mean(s.torch_us for s in before),
            torch_now_us=_mean(s.torch_us for s in after),
            ratio=change.middle, low=change.low, high=change.high, threshold=limit,
            verdict=stats.verdict(change, limit),
        )  # fmt: skip


class _Session(NamedTuple):
    """One version at one size in one session; `speed` is by the basis, larger is faster."""

    us: float
    torch_us: float
    speed: Interval


def _session(benchmark: Benchmark, version: str, size: str, basis: str) -> _Session | None:
    if "torch" not in benchmark.providers or version not in benchmark.providers:
        return None
    own, torch = benchmark.timing(version, size), benchmark.timing("torch", size)
    if own is None or torch is None:
        return None
    own_us, torch_us = own.samples_us + own.extra_us, torch.samples_us + torch.extra_us
    n = min(len(own_us), len(torch_us))
    baseline_us = torch_us[:n] if basis == "torch" else (1.0,) * n
    speed = stats.paired_speedup(own_us[:n], baseline_us, confidence=_CONFIDENCE)
    return _Session(own.mean_us, torch.mean_us, speed)


def change_of(then: Sequence[Interval], now: Sequence[Interval]) -> Interval:
    """Return the ratio of two speeds, each of one or more sessions, with its interval.

    Several sessions of one side differ by more than their rounds say; the interval is at least as
    wide as that difference.
    """
    middles = [[math.log(s.middle) for s in side] for side in (then, now)]
    center = _mean(middles[1]) - _mean(middles[0])
    variance = sum(
        _mean((math.log(s.high / s.low) / 2) ** 2 for s in side) / len(side) for side in (then, now)
    )
    spread = max(max(side) - min(side) for side in middles)
    half = max(math.sqrt(variance), spread)
    return Interval(math.exp(center), math.exp(center - half), math.exp(center + half))


def _mean(values: Iterable[float]) -> float:
    numbers = tuple(values)
    return math.fsum(numbers) / len(numbers)


def _retiming(
    now: Benchmark, changes: Sequence[SpeedChange], not_compared: dict[str, str]
) -> Retiming:
    return Retiming(
        op=now.op, status=now.status, error=now.error, message=now.message, dtype=now.dtype,
        environment=now.environment, duration_s=now.duration_s, changes=tuple(changes),
        not_compared=not_compared, benchmark=now,
    )  # fmt: skip


# -------------------------------------------------------------------------- another environment


def time_in_both(session: Session, job: BenchJob, python: str) -> Retiming:
    """Time the same sources here and in another environment, in turn: here, there, there, here.

    Raises:
        BadValue: no interpreter there, or one without the same triton_magics, torch and Triton.
        IllegalStep: jobs do not run on this machine.
    """
    path = check_interpreter(session, python)
    limits = session.jobs.limits(max(session.settings.job_s, 2 * job.budget_s))
    executor = LocalExecutor(session.settings, python=path)
    there = JobManager(executor)
    sessions: dict[bool, list[Benchmark]] = {False: [], True: []}
    try:
        for is_there in (False, True, True, False):
            manager = there if is_there else session.jobs.manager
            outcome = manager.run(job, key="", limits=limits)
            benchmark = outcomes.benchmark(outcome, job)
            if not benchmark.passed:
                where = f" ({path})" if is_there else ""
                message = f"{benchmark.message or benchmark.status.value}{where}"
                return _retiming(benchmark, (), {}).evolve(python=path, message=message)
            sessions[is_there].append(benchmark)
    finally:
        there.close()
    return compare_environments(sessions[False], sessions[True], path)


def compare_environments(
    here: Sequence[Benchmark], there: Sequence[Benchmark], python: str
) -> Retiming:
    """Compare times of this environment with those of another one on the same GPU.

    With one torch in both, by the ratios to it; otherwise by the times themselves.

    Raises:
        IllegalStep: they ran on different GPUs.
    """
    one, other = here[0].environment, there[0].environment
    gpus = {b.environment.gpu_uuid for b in (*here, *there) if b.environment}
    if len(gpus) > 1:
        raise IllegalStep("the sessions ran on different GPUs; set `gpus` to one of them")
    same_torch = bool(one and other and one.torch == other.torch)
    basis = "torch" if same_torch else "time"
    changes = [
        change
        for version in there[0].versions
        for change in _changes(
            here, there, version, "this environment", ENVIRONMENT_THRESHOLD, basis=basis
        )
    ]
    retiming = _retiming(there[-1], changes, {})
    return retiming.evolve(python=python, basis=basis, status=Status.PASSED)


def check_interpreter(session: Session, python: str) -> str:
    """Return the interpreter's path, if it has the same triton_magics, and torch.

    Raises:
        BadValue: it is missing, or lacks a package, or has another version of triton_magics.
        IllegalStep: jobs do not run on this machine.
    """
    if not isinstance(session.jobs.executor, LocalExecutor):
        raise IllegalStep("--env starts an interpreter of this machine; set engine = 'local'")
    path = Path(python).expanduser()
    path = path / "bin" / "python" if path.is_dir() else path
    if not os.access(path, os.X_OK) or path.is_dir():
        raise BadValue(f"--env {python}: no interpreter there; name its file, PATH/bin/python")
    try:
        done = subprocess.run(
            [str(path), "-P", "-c", _FIND_PACKAGES], capture_output=True, text=True, timeout=120,
            env={**os.environ, "PYTHONPATH": _own_path()}, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadValue(f"--env {python}: it can't be started ({error})") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a message"])[-1]
        raise BadValue(
            f"--env {python}: {last}. Install there what this one has: {path} -m pip install "
            f"'triton-magics[kernels]=={VERSION}'"
        )
    version, _ = json.loads(done.stdout.strip().splitlines()[-1])
    if version != VERSION:
        raise BadValue(
            f"--env {python}: it has triton-magics {version}, this one {VERSION}; install the same"
        )
    return str(path)


def _own_path() -> str:
    """Return the folder of this package where it is a checkout; an installed one is not lent."""
    parent = Path(__file__).resolve().parents[2]
    return "" if parent.name == "site-packages" else str(parent)


__all__ = [
    "ENVIRONMENT_THRESHOLD",
    "THRESHOLD",
    "Recorded",
    "change_of",
    "check_interpreter",
    "compare_environments",
    "compare_with_record",
    "recorded_benchmarks",
    "recorded_versions",
    "require_gpu",
    "time_in_both",
]
