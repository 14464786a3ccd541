"""Rounds of a benchmark: each provider once per round in random order, every output checked."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from triton_magics import exception_text, operators, stats
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.load import make_kernel_error, one_line_error
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timers.gated_timer import (
    HOST_TOO_SLOW,
    CalibratedTimer,
    TimedCall,
    UnstableTiming,
)
from triton_magics.harness.timers.graph_timer import NotCaptured
from triton_magics.harness.timing.baselines import TORCH_COMPILE, Provider
from triton_magics.harness.timing.input_pool import InputPool, timing_case, traffic
from triton_magics.harness.timing.judged_contents import open_contents
from triton_magics.harness.timing.provider_series import ProviderSeries
from triton_magics.harness.timing.speed_verdicts import (
    CONTROL,
    compare_timings,
    undecided_providers,
)
from triton_magics.harness.timing.timed_contents import OutputFault, void_message
from triton_magics.harness.timing.torch_settings import TorchSettings
from triton_magics.model import Discard, NotTimed, NotTimedCode, Status, Timing

T = TypeVar("T")
WARM_CALLS = 3
EXTRA_ROUNDS = 15
MAX_ROUNDS = 100
SMALL_SETS = 32  # the address of a set changes a call of 3 us by 1 % (H200)
WRONG_BASELINE = "it does not compute {}: {}"


class VoidTime(Exception):
    """A timed call of `provider` gave a wrong answer, or a cached one; the benchmark is void."""

    def __init__(self, provider: str, size: str, fault: OutputFault) -> None:
        super().__init__(void_message(provider, size, fault))
        self.provider = provider
        self.code = fault.code


class BaselineMismatch(Exception):
    """The output of a baseline of `--against` is not the op's; the message gives the error."""


class CudaContextLost(Exception):
    """A CUDA error of `provider`, after which no call in this process works."""

    def __init__(self, provider: str, size: str, reason: str) -> None:
        super().__init__(f"{provider} at {size}: {reason}; nothing after it could be timed")
        self.provider = provider
        self.reason = reason


@dataclass(frozen=True)
class TimingSession:
    """One benchmark on a GPU.

    Attributes:
        deadline: the end of extra rounds, by `time.monotonic`.
        make_fallback_timer: makes the timer to use when a graph can't be captured.
        settings: torch's settings before the first provider ran.
        changed_settings: names of the providers that changed torch's settings.
    """

    job: BenchJob
    op: operators.Op
    providers: tuple[Provider, ...]
    timer: CalibratedTimer
    report: Reporter
    deadline: float
    make_fallback_timer: Callable[[], CalibratedTimer] | None = None
    settings: TorchSettings = field(default_factory=TorchSettings)
    changed_settings: set[str] = field(default_factory=set)

    def restore_settings(self, provider: Provider) -> None:
        """Restore torch's settings, and record the provider if it had changed them."""
        if self.settings.restore():
            self.changed_settings.add(provider.name)


@dataclass(frozen=True)
class SizeRun:
    """The rounds at one size.

    Attributes:
        timer: the timer.
        active_providers: the providers that are still timed.
        input_pool: their inputs.
        series: the measurements by provider name.
        not_timed: the providers that were dropped, with reasons.
        calls: number of calls in a run.
        notes: conditions to report.
    """

    timer: CalibratedTimer
    active_providers: list[Provider]
    input_pool: InputPool
    series: dict[str, ProviderSeries]
    not_timed: list[NotTimed]
    calls: int
    notes: tuple[str, ...] = ()

    def drop(
        self, provider: Provider, size: str, reason: str, code: NotTimedCode | None = None
    ) -> None:
        """Stop timing a provider at this size, for a reason."""
        self.active_providers.remove(provider)
        self.series.pop(provider.name, None)
        missing = NotTimed(size=size, provider=provider.name, reason=reason, code=code)
        self.not_timed.append(missing)


def time_all_sizes(session: TimingSession) -> dict[str, Any]:
    """Return timings, comparisons and reasons for missing times, over all sizes."""
    timings: list[Timing] = []
    missing: list[NotTimed] = []
    comparisons, controls = [], []
    notes: list[str] = []
    failure: dict[str, Any] = {}
    for size in session.job.sizes:
        try:
            size_run = _one_size(session, size)
        except VoidTime as void:
            culprit = NotTimed(size=size, provider=void.provider, reason=str(void), code=void.code)
            return {
                "status": Status.FAILED,
                "message": str(void),
                "timings": tuple(t for t in timings if t.provider != void.provider),
                "not_timed": (culprit,),
                "conditions": tuple(notes),
            }
        except CudaContextLost as lost:
            failure = {"status": Status.CRASHED, "message": str(lost)}
            missing.append(NotTimed(size=size, provider=lost.provider, reason=lost.reason))
            break
        except torch.OutOfMemoryError:
            missing.append(NotTimed(size=size, reason="does not fit the GPU's free memory"))
            torch.cuda.empty_cache()
            continue
        missing += size_run.not_timed
        notes += size_run.notes
        size_timings = [
            _make_timing(session, size, name, s, size_run) for name, s in size_run.series.items()
        ]
        for timing in size_timings:
            session.report.timing(timing)
        tick_us, baselines = size_run.timer.tick_us, session.job.baselines
        pairs, control = compare_timings(size_timings, tick_us, baselines)
        timings += [t for t in size_timings if t.provider != CONTROL]
        comparisons += pairs
        controls += control
    return {
        "status": Status.PASSED if timings else Status.FAILED,
        "timings": tuple(timings),
        "comparisons": tuple(comparisons),
        "controls": tuple(controls),
        "not_timed": tuple(missing),
        "conditions": tuple(notes),
        **failure,
    }


def _one_size(session: TimingSession, size: str) -> SizeRun:
    """Time one size with one timer; fall back to the gated timer if a graph can't be captured."""
    try:
        return _rounds(session, size)
    except NotCaptured as failed:
        if session.make_fallback_timer is None:
            raise
        note = f"{size}: {failed}; all providers were timed with the gated timer instead"
    # Outside the handler: later exceptions must not have this one as their cause.
    fallback_timer = session.make_fallback_timer()
    retried = replace(session, timer=fallback_timer, make_fallback_timer=None)
    size_run = _rounds(retried, size)
    return replace(size_run, notes=(note,))


def _rounds(session: TimingSession, size: str) -> SizeRun:
    """Run the rounds at one size, then extra rounds for undecided providers only."""
    job, report = session.job, session.report
    draw = random.Random(f"{job.seed}-{size}")  # noqa: S311 (an order that can be replayed)
    size_run = _prepare_size(session, size, draw.getrandbits(31))
    timed, done, rounds = size_run.active_providers, 0, job.runs
    while done < rounds and timed:
        report.stage(f"timing {size}", done, rounds)
        size_run.input_pool.refill(draw.getrandbits(31), size_run.calls)
        for provider in draw.sample(timed, len(timed)):
            _one_run(session, provider, size_run, size)
        done += 1
        if done == rounds < MAX_ROUNDS and time.monotonic() < session.deadline:
            timed = _select_undecided(size_run, timed, job.baselines)
            rounds = min(rounds + EXTRA_ROUNDS, MAX_ROUNDS)
        timed = [p for p in timed if p in size_run.active_providers]
    _check_new_contents(size_run, size)
    return size_run


def _check_new_contents(size_run: SizeRun, size: str) -> None:
    """Check that no version is far quicker on contents that it has had before.

    Raises:
        VoidTime: a version is; it caches answers.
    """
    for provider in size_run.active_providers:
        if provider.version and (fault := size_run.series[provider.name].find_caching()):
            raise VoidTime(provider.name, size, fault)


def _select_undecided(
    size_run: SizeRun, timed: list[Provider], baselines: Sequence[str]
) -> list[Provider]:
    """Return the providers of undecided comparisons."""
    net_us = {
        name: size_run.timer.net_us(series.raw_us) for name, series in size_run.series.items()
    }
    names = undecided_providers(net_us, size_run.timer.tick_us, baselines)
    return [p for p in timed if p.name in names]


def _prepare_size(session: TimingSession, size: str, seed: int) -> SizeRun:
    """Warm all providers up, and choose the number of calls in a run from their times."""
    if TORCH_COMPILE in session.job.against:
        # Otherwise the second shape would be compiled for dynamic shapes, which is slower.
        torch._dynamo.reset()
    case = timing_case(session.op, size, session.job.dtype, seed)
    timer = session.timer.base
    n = len(session.providers) + 12
    device, spread = this_device(), timer.spread_bytes
    input_pool = InputPool(
        session.op,
        case,
        device,
        n=n,
        small=SMALL_SETS,
        spread_bytes=spread,
        contents=open_contents(session.op, case, size, device),
    )
    size_run = SizeRun(
        timer=session.timer,
        active_providers=list(session.providers),
        input_pool=input_pool,
        series={p.name: ProviderSeries() for p in session.providers},
        not_timed=[],
        calls=1,
    )
    fastest = min(
        (t for p in session.providers if (t := _warm(session, p, size_run, size))), default=0
    )
    return replace(size_run, calls=timer.calls_per_run(fastest, len(input_pool)))


def _warm(session: TimingSession, provider: Provider, size_run: SizeRun, size: str) -> float | None:
    """Compile, autotune and call; return a call's raw microseconds, None if it can't be timed."""
    session.report.stage(f"warming {provider.name} at {size}", patience_s=session.job.compile_s)

    def warm_and_time() -> float:
        for i in range(WARM_CALLS):
            provider.call(*size_run.input_pool.inputs(i))
        size_run.timer.base.synchronize()
        calls = size_run.input_pool.make_calls(provider.call, WARM_CALLS)
        samples = size_run.timer.base.run(calls)
        if provider.version is None and provider.call is not session.op.reference:
            _check_baseline([s.value for s in samples], calls, size_run)
        return min(s.raw_us for s in samples)

    raw_us = _call_or_drop(warm_and_time, provider, size_run, size)
    session.restore_settings(provider)
    return raw_us


def _check_baseline(values: Sequence[Any], calls: Sequence[TimedCall], size_run: SizeRun) -> None:
    """Check that a baseline computes the op.

    Raises:
        BaselineMismatch: its outputs are wrong.
    """
    if fault := size_run.input_pool.check_outputs(values, calls):
        raise BaselineMismatch(WRONG_BASELINE.format(size_run.input_pool.op.name, fault.message))


def _call_or_drop(
    function: Callable[[], T], provider: Provider, size_run: SizeRun, size: str
) -> T | None:
    """Return the function's result; if it raises, drop the provider at this size.

    Raises:
        CudaContextLost: a CUDA error, after which no call in this process works.
        NotCaptured: the call can't be captured in a graph; another timer may work.
    """
    try:
        return function()
    except NotCaptured as error:
        raise NotCaptured(f"{provider.name} can't be captured in a CUDA graph ({error})") from error
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        size_run.drop(provider, size, "out of GPU memory")
    except BaseException as error:
        reason = failure_reason(provider, error)
        if "CUDA error" in exception_text.text_of(error):
            raise CudaContextLost(provider.name, size, reason) from error
        size_run.drop(provider, size, reason, _failure_code(error))
    return None


def failure_reason(provider: Provider, error: BaseException) -> str:
    """Return why a provider's call failed, with the line of its cell."""
    if isinstance(error, BaselineMismatch):
        return str(error)
    if provider.version is None:
        return exception_text.shorten(exception_text.one_line(error), 200)
    return one_line_error(make_kernel_error(error, provider.version.ref, provider.version.module))


def _failure_code(error: BaseException) -> NotTimedCode | None:
    """Return the code of a failure that the self-test provokes."""
    if isinstance(error, BaselineMismatch):
        return NotTimedCode.WRONG_OUTPUT
    if isinstance(error, UnstableTiming) and HOST_TOO_SLOW in error.reasons:
        return NotTimedCode.HOST_TOO_SLOW
    return None


def _one_run(session: TimingSession, provider: Provider, size_run: SizeRun, size: str) -> None:
    """Time one run of a provider and check its outputs.

    Raises:
        VoidTime: an output of a version is wrong.
    """
    own, pool = size_run.series[provider.name], size_run.input_pool
    calls = pool.make_calls(provider.call, size_run.calls)
    samples = _call_or_drop(lambda: size_run.timer.base.run(calls), provider, size_run, size)
    session.restore_settings(provider)
    if samples is None:
        return
    for reason in itertools.chain.from_iterable(s.discarded for s in samples):
        own.discards[reason] = own.discards.get(reason, 0) + 1
    if provider.call is not session.op.reference:
        fault = pool.check_outputs([s.value for s in samples], calls, provider.name)
        if fault and provider.version:
            raise VoidTime(provider.name, size, fault)
        if fault:
            reason = WRONG_BASELINE.format(pool.op.name, fault.message)
            size_run.drop(provider, size, reason, fault.code)
            return
    raw_us = [s.raw_us for s in samples]
    own.raw_us.append(stats.middle_mean(raw_us))
    if size_run.timer.base.clock == "gpu":
        own.compare_new(size_run.timer.net_us(raw_us), [call.content for call in calls])


def _make_timing(
    session: TimingSession, size: str, name: str, series: ProviderSeries, size_run: SizeRun
) -> Timing:
    runs = session.job.runs
    net_us = size_run.timer.net_us(series.raw_us)
    n_bytes, flops = traffic(session.op, size_run.input_pool)
    return Timing(
        provider=name,
        size=size,
        shape=size_run.input_pool.case.shape,
        clock=size_run.timer.base.clock,
        samples_us=net_us[:runs],
        raw_us=tuple(series.raw_us[:runs]),
        extra_us=net_us[runs:],
        discards=tuple(Discard(reason=r, count=n) for r, n in series.discards.items()),
        calls=size_run.calls,
        bytes=n_bytes,
        flops=flops,
    )
