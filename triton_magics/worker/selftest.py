"""Does the timing tell right from wrong here? Kernels of known length, and three cheats."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, BenchJob, OpRef, SelfTestJob
from triton_magics.model import Comparison, SelfCheck, SelfTest, Status
from triton_magics.worker import bench
from triton_magics.worker.ceilings import Ceilings, ceilings
from triton_magics.worker.lock import gpu_lock
from triton_magics.worker.providers import Provider
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import environment, this_device
from triton_magics.worker.rounds import Session, all_sizes
from triton_magics.worker.selftest_kernel import spinning
from triton_magics.worker.timers import SLOW, no_garbage_collection
from triton_magics.worker.verdicts import AGAIN

NO_GPU = "the self-test times kernels of known length on a GPU; here is none, and nothing is ranked"
OP, SIZE = "vector_add", "small"
CYCLES = 20_000  # about 10 us on an H200
LATE_S = 0.03  # longer than any gate
LONGER, TWICE = 0.02, 1.0
UNEQUAL = "does not compute"

Call = Callable[..., Any]
Race = Callable[[dict[str, Call]], dict[str, Any]]
"""Times calls by name as versions are timed, and gives what `rounds.all_sizes` gives."""


def run(job: SelfTestJob, report: Reporter) -> tuple[Answer, bool]:
    """The self-test on this GPU, or why there is none."""
    started = time.monotonic()
    known = environment()
    if this_device().type != "cuda":
        return SelfTest(status=Status.NO_GPU, environment=known, message=NO_GPU), False
    limits = ceilings(known, report)
    with gpu_lock(known.gpu_uuid, alone=True, what="the self-test", waiting=report.waiting):
        report.stage("gauging the timer", patience_s=60)
        with torch.no_grad(), no_garbage_collection():
            checks = checked(_racing(job, limits, report), spinning)
    passed = all(check.passed for check in checks)
    made = SelfTest(
        status=Status.PASSED if passed else Status.FAILED,
        checks=checks,
        environment=known,
        duration_s=time.monotonic() - started,
    )
    return made, False


def _racing(job: SelfTestJob, known: Ceilings | None, report: Reporter) -> Race:
    op = ops.load(OP)
    task = BenchJob(
        op=OpRef(name=OP), versions=(), sizes=(SIZE,), runs=10, dtype="float32", seed=job.seed,
        budget_s=job.budget_s,
    )  # fmt: skip

    def race(calls: dict[str, Call]) -> dict[str, Any]:
        # In torch's place one of the kernels: a control that is as long as what it controls.
        base = spinning(CYCLES)
        timed = [Provider(name, call) for name, call in calls.items()]
        session = Session(
            job=task,
            op=op,
            providers=(Provider("torch", base), *timed, Provider(AGAIN, base)),
            watch=bench.gauged(task, "gated", known),
            report=report,
            deadline=time.monotonic() + job.budget_s,
        )
        return all_sizes(session)

    return race


def checked(race: Race, lasting: Callable[[int], Call]) -> tuple[SelfCheck, ...]:
    """Every check.

    Args:
        race: times calls.
        lasting: a vector_add of so many cycles.
    """
    return (*_ranked(race, lasting), *_caught(race, lasting(CYCLES)))


def _ranked(race: Race, lasting: Callable[[int], Call]) -> list[SelfCheck]:
    """A kernel against itself, and against longer ones."""
    tried = race({"v1_once": lasting(CYCLES), "v2_twice": lasting(2 * CYCLES)})
    net = {t.provider: t.median_us for t in tried["timings"]}
    more_us = net["v2_twice"] - net["v1_once"] if len(net) == 3 else 0.0
    if more_us <= 0:
        what = "twice as many cycles take longer"
        return [SelfCheck(what=what, passed=False, said="they don't: this clock tells nothing")]

    def longer(share: float) -> Call:
        return lasting(round(CYCLES + share * net["v1_once"] * CYCLES / more_us))

    made = race(
        {
            "v1_base": lasting(CYCLES),
            "v2_again": lasting(CYCLES),
            "v3_longer": longer(LONGER),
            "v4_twice": longer(LONGER + TWICE),
        }
    )
    told = {(c.candidate, c.baseline): c for c in made["comparisons"]}
    return [
        _verdict("a kernel against itself is the same", told.get(("v2_again", "v1_base")), "same"),
        _verdict("2 % longer is slower", told.get(("v3_longer", "v2_again")), "slower"),
        _verdict("100 % longer is slower", told.get(("v4_twice", "v3_longer")), "slower"),
    ]


def _verdict(what: str, told: Comparison | None, wanted: str) -> SelfCheck:
    if told is None:
        return SelfCheck(what=what, passed=False, said="it was not timed")
    interval = f"{told.ratio:.3f} ({told.low:.3f} to {told.high:.3f})"
    said = f"{told.verdict}: {interval}, {told.rounds} rounds"
    return SelfCheck(what=what, passed=told.verdict == wanted, said=said)


def _caught(race: Race, add: Call) -> list[SelfCheck]:
    """Calls whose time would be wrong: each must be left without one, for its own reason."""
    return [_left_out(race, what, call, why) for what, (call, why) in _cheats(add).items()]


def _cheats(add: Call) -> dict[str, tuple[Call, str]]:
    """What each is, its call, and words of the reason why it must have no time."""
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
        "a host that is late is not in a time": (late, SLOW),
        "work on a stream that does not wait is caught": (aside, UNEQUAL),
        "work on a stream after the end event is caught": (after, UNEQUAL),
    }


def _left_out(race: Race, what: str, call: Call, why: str) -> SelfCheck:
    gaps = [g for g in race({"v1_cheat": call})["not_timed"] if g.provider == "v1_cheat"]
    if not gaps:
        return SelfCheck(what=what, passed=False, said="it was timed like any other")
    return SelfCheck(what=what, passed=why in gaps[0].reason, said=gaps[0].reason)
