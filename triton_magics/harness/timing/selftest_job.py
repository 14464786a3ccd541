"""Self-test of the timing: kernels of known duration, and three calls that cheat the timer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from triton_magics import languages, operators
from triton_magics.execution.job_answers import Answer
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob, SelfTestJob
from triton_magics.harness.process.device import GPU, environment, this_device
from triton_magics.harness.process.gpu_lock import gpu_lock
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timers.gated_timer import no_garbage_collection
from triton_magics.harness.timing import bench_job
from triton_magics.harness.timing.baselines import Provider
from triton_magics.harness.timing.peak_rates import PeakRates, get_peak_rates
from triton_magics.harness.timing.rounds import TimingSession, time_all_sizes
from triton_magics.harness.timing.speed_verdicts import CONTROL
from triton_magics.model import Comparison, NotTimedCode, SelfCheck, SelfTest, Status

NO_GPU = "the self-test times kernels of known duration on a GPU; no GPU was found"
OP, SIZE = "vector_add", "small"
CYCLES = 20_000  # about 10 us on an H200
LATE_S = 0.03  # longer than any gate
LONGER, TWICE = 0.02, 1.0
TWICE_AS_LONG = "twice as many cycles take longer"
USELESS_CLOCK = "they take no longer: this clock can't measure kernels"

Function = Callable[..., Any]
Race = Callable[[dict[str, Function]], dict[str, Any]]
"""Time functions by name as versions are timed; return the dict of `rounds.time_all_sizes`."""


def run(job: SelfTestJob, report: Reporter) -> tuple[Answer, bool]:
    """Run the self-test on this GPU; without a GPU the result says so."""
    started = time.monotonic()
    here = environment()
    if this_device() != GPU:
        return SelfTest(status=Status.NO_GPU, environment=here, message=NO_GPU), False
    peak_rates = get_peak_rates(here, report)
    with gpu_lock(here.gpu_uuid, exclusive=True, purpose="the self-test", on_wait=report.waiting):
        report.stage("calibrating the timer", patience_s=60)
        with torch.no_grad(), no_garbage_collection():
            checks = run_checks(
                _make_race(job, peak_rates, report), languages.instruments().spinning
            )
    passed = all(check.passed for check in checks)
    result = SelfTest(
        status=Status.PASSED if passed else Status.FAILED,
        checks=checks,
        environment=here,
        duration_s=time.monotonic() - started,
    )
    return result, False


def _make_race(job: SelfTestJob, peak_rates: PeakRates | None, report: Reporter) -> Race:
    op = operators.load(OP)
    task = BenchJob(
        op=OpRef(name=OP), versions=(), sizes=(SIZE,), runs=10, dtype="float32", seed=job.seed,
        budget_s=job.budget_s,
    )  # fmt: skip

    def race(calls: dict[str, Function]) -> dict[str, Any]:
        # One of the kernels takes torch's place, so that the control is as long as the others.
        base = languages.instruments().spinning(CYCLES)
        timed = [Provider(name, call) for name, call in calls.items()]
        session = TimingSession(
            job=task,
            op=op,
            providers=(Provider("torch", base), *timed, Provider(CONTROL, base)),
            timer=bench_job.calibrate_timer(task, "gated", peak_rates),
            report=report,
            deadline=time.monotonic() + job.budget_s,
        )
        return time_all_sizes(session)

    return race


def run_checks(race: Race, lasting: Callable[[int], Function]) -> tuple[SelfCheck, ...]:
    """Run every check.

    Args:
        race: times functions.
        lasting: makes a vector_add of a number of cycles.
    """
    return (*_check_ranking(race, lasting), *_check_cheats(race, lasting(CYCLES)))


def _check_ranking(race: Race, lasting: Callable[[int], Function]) -> list[SelfCheck]:
    """Check the verdicts of a kernel against itself and against longer ones."""
    first_race = race({"v1_once": lasting(CYCLES), "v2_twice": lasting(2 * CYCLES)})
    net = {t.provider: t.median_us for t in first_race["timings"]}
    more_us = net["v2_twice"] - net["v1_once"] if len(net) == 3 else 0.0
    if more_us <= 0:
        return [SelfCheck(name=TWICE_AS_LONG, passed=False, outcome=USELESS_CLOCK)]

    def longer(share: float) -> Function:
        return lasting(round(CYCLES + share * net["v1_once"] * CYCLES / more_us))

    second_race = race(
        {
            "v1_base": lasting(CYCLES),
            "v2_again": lasting(CYCLES),
            "v3_longer": longer(LONGER),
            "v4_twice": longer(LONGER + TWICE),
        }
    )
    comparisons = {(c.candidate, c.baseline): c for c in second_race["comparisons"]}
    return [
        _check_verdict(
            "a kernel against itself is the same", comparisons.get(("v2_again", "v1_base")), "same"
        ),
        _check_verdict(
            "2 % longer is slower", comparisons.get(("v3_longer", "v2_again")), "slower"
        ),
        _check_verdict(
            "100 % longer is slower", comparisons.get(("v4_twice", "v3_longer")), "slower"
        ),
    ]


def _check_verdict(name: str, comparison: Comparison | None, expected: str) -> SelfCheck:
    if comparison is None:
        return SelfCheck(name=name, passed=False, outcome="it was not timed")
    interval = f"{comparison.ratio:.3f} ({comparison.low:.3f} to {comparison.high:.3f})"
    outcome = f"{comparison.verdict}: {interval}, {comparison.rounds} rounds"
    return SelfCheck(name=name, passed=comparison.verdict == expected, outcome=outcome)


def _check_cheats(race: Race, add: Function) -> list[SelfCheck]:
    """Check that each cheating call is left without a time, for the right reason."""
    return [_check_cheat(race, name, call, codes) for name, (call, *codes) in _cheats(add).items()]


def _cheats(add: Function) -> dict[str, tuple[Any, ...]]:
    """Return, by name, each cheating call and the codes of the reasons that may be given."""
    stream = torch.cuda.Stream()

    def late(*inputs: Any) -> Any:
        time.sleep(LATE_S)
        return add(*inputs)

    def aside(*inputs: Any) -> Any:
        with torch.cuda.stream(stream):
            return add(*inputs)

    def after(*inputs: Any) -> Any:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            return add(*inputs)

    return {
        "late host time is not in a sample": (late, NotTimedCode.HOST_TOO_SLOW),
        "work on a stream that does not wait is detected": (aside, NotTimedCode.WRONG_OUTPUT),
        "work on a stream after the end event is detected": (
            # It leaves what the memory had: garbage, or the output of an earlier call.
            after,
            NotTimedCode.WRONG_OUTPUT,
            NotTimedCode.CACHED,
        ),
    }


def _check_cheat(race: Race, name: str, call: Function, codes: Sequence[NotTimedCode]) -> SelfCheck:
    gaps = [g for g in race({"v1_cheat": call})["not_timed"] if g.provider == "v1_cheat"]
    if not gaps:
        return SelfCheck(name=name, passed=False, outcome="it was timed like any other")
    return SelfCheck(name=name, passed=gaps[0].code in codes, outcome=gaps[0].reason)
