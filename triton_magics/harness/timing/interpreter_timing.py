"""Timing in an interpreter on the CPU: gives the cost of a run, and ranks nothing."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

from triton_magics import operators
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness.call_record import all_outputs, outputs_of
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal
from triton_magics.harness.correctness.output_checks import REUSED_MEMORY
from triton_magics.harness.correctness.skip_rules import unsupported_reason
from triton_magics.harness.load import LoadedVersion, UserFault, make_kernel_error, one_line_error
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.reporter import Reporter
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.harness.timing.judged_contents import open_contents
from triton_magics.harness.timing.timed_contents import (
    OTHER_INPUTS,
    Inputs,
    OutputFault,
    void_message,
)
from triton_magics.harness.version_call import BackwardPass, backward_pass
from triton_magics.model import (
    CUSTOM_SIZE,
    Badge,
    BadgeCode,
    BadgeParameter,
    Benchmark,
    Case,
    NotTimed,
    NotTimedCode,
    Status,
    Timing,
    shape_text,
)

ESTIMATE_MARGIN = 1.5
_clock_s = time.perf_counter  # bound before any version is loaded, which may replace it
SETS = 2  # of tensors: the same addresses with other contents, and other ones
KEPT_BYTES = 2**26  # of outputs, to see that no later run changes them


def run(
    job: BenchJob,
    op: operators.Op,
    versions: tuple[LoadedVersion, ...],
    base: Benchmark,
    report: Reporter,
) -> Benchmark:
    """Time the versions within the budget, without torch."""
    for version in versions:
        if refused := version.runtime.refused_on_cpu(job.dtype):
            raise UserFault(f"{refused}; use float32")
    deadline = time.monotonic() + job.budget_s
    timings: list[Timing] = []
    missing: list[NotTimed] = []
    costs: dict[str, float] = {}
    for i, size in enumerate(job.sizes):
        left = deadline - time.monotonic()
        share = left / (len(job.sizes) - i) / max(len(versions), 1)
        for version in versions:
            step = f"timing {version.name} at {size}"
            report.stage(step, i, len(job.sizes), patience_s=max(20, 2 * share))
            outcome = _time_version(op, version, size, job, costs=costs, share_s=share)
            if isinstance(outcome, NotTimed) and outcome.code:
                return base.evolve(
                    message=outcome.reason, timings=tuple(timings), not_timed=(outcome,)
                )
            if isinstance(outcome, Timing):
                timings.append(outcome)
                report.timing(outcome)
            else:
                missing.append(outcome)
    few = any(len(t.samples_us) < job.runs for t in timings)
    return base.evolve(
        status=Status.PASSED if timings else Status.FAILED,
        providers=base.versions,
        timings=tuple(timings),
        not_timed=(*missing, *_untimed_baselines(job)),
        badges=(
            Badge.of(BadgeCode.INTERPRETER),
            *((Badge.of(BadgeCode.FEW_RUNS, runs=job.runs),) if few else ()),
            *_unsupported_options(job),
        ),
    )


def _unsupported_options(job: BenchJob) -> tuple[Badge, ...]:
    """Return a badge for each requested option that needs a GPU."""
    requested: dict[str, BadgeParameter] = {
        "timer": job.timer != "gated" and job.timer,
        "hot": not job.cold,
        "census": job.census,
    }
    return tuple(
        Badge.of(BadgeCode.NEEDS_GPU, parameter=name, value=value)
        for name, value in requested.items()
        if value
    )


def _untimed_baselines(job: BenchJob) -> list[NotTimed]:
    """Return an entry for each baseline of `--against` that is not a version."""
    reason = "only a GPU's times are compared"
    return [
        NotTimed(size=s, provider=name, reason=reason) for s in job.sizes for name in job.against
    ]


def _time_version(
    op: operators.Op,
    version: LoadedVersion,
    size: str,
    job: BenchJob,
    *,
    costs: dict[str, float],
    share_s: float,
) -> Timing | NotTimed:
    """Time a version at one size.

    Returns:
        The timing, or the reason for a missing time; with a code if an output was wrong.
    """
    case = timing_case(op, size, job.dtype, job.seed)
    reason = unsupported_reason(op, case, this_device(), job.dtype, version.runtime)
    if case.size == CUSTOM_SIZE and reason:
        return NotTimed(size=size, provider=version.name, reason=reason)
    if share_s <= 0 and version.name not in costs:
        reason = f"no time is left for it in --budget {job.budget_s:g}"
        return NotTimed(size=size, provider=version.name, reason=reason)
    runs = InterpreterRuns(version, op, case, size, backward_only=job.backward_only)
    try:
        programs = runs.count_programs()
        estimate = costs.get(version.name, 0.0) * programs * ESTIMATE_MARGIN
        if estimate > share_s:
            return NotTimed(
                size=size,
                provider=version.name,
                reason=f"one run of {shape_text(case.shape)} would take too long for "
                f"--budget {job.budget_s:g}",
                estimate_s=estimate,
            )
        fault = runs.time(job.runs, share_s)
    except UserFault:
        raise
    except BaseException as error:  # noqa: BLE001 (a version can raise anything)
        reason = one_line_error(make_kernel_error(error, version.ref, version.module))
        return NotTimed(size=size, provider=version.name, reason=reason)
    if fault:
        reason = void_message(version.name, size, fault)
        return NotTimed(size=size, provider=version.name, reason=reason, code=fault.code)
    costs[version.name] = min(runs.samples_us) / max(programs, 1) / 1e6
    flops = int(op.flops(*runs.contents.latest)) if op.flops else None
    return Timing(
        provider=version.name,
        size=size,
        shape=case.shape,
        clock="interpreter",
        samples_us=tuple(runs.samples_us),
        flops=flops,
    )


class InterpreterRuns:
    """Runs of a version at one size, each on contents of its own.

    Attributes:
        contents: of the inputs.
        samples_us: the duration of each run, microseconds.
    """

    def __init__(
        self,
        version: LoadedVersion,
        op: operators.Op,
        case: Case,
        size: str,
        *,
        backward_only: bool = False,
    ) -> None:
        self.contents = open_contents(op, case, size, this_device())
        self.samples_us: list[float] = []
        self._version, self._op = version, op
        call = backward_pass(version.call) if backward_only else version.call
        self._prepare: Callable[..., Callable[[], Any]]
        self._prepare = call.prepare if isinstance(call, BackwardPass) else partial(partial, call)
        self._draw = random.Random(f"{case.seed} runs")  # noqa: S311 (replayed from the seed)
        self._sets = [self._copy_of(self.contents.latest) for _ in range(SETS)]
        self._earlier_outputs: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._without_launches: list[torch.Tensor] = []

    @staticmethod
    def _copy_of(values: Inputs) -> Inputs:
        return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in values)

    def count_programs(self) -> int:
        """Count the programs of one call without running them; 1 if the wrapper needs results.

        New memory is NaN, or the largest integer, so that an output says that nothing wrote it.
        """
        observing = self._version.runtime.observe_launches(suppress=True)
        needs_results = suppress(RuntimeError, ValueError, TypeError, IndexError)
        fake, memory = fake_gpu(this_device()), _new_memory_is_nan()
        with torch.no_grad(), fake, memory, observing as launches, needs_results:
            value = self._version.call(*self._sets[0])
            self._without_launches = [t for t in outputs_of(value) if type(t) is torch.Tensor]
        return max(launches.programs, 1)

    def time(self, runs: int, share_s: float) -> OutputFault | None:
        """Time the runs that fit the share, at least one; return what is wrong with an output.

        A run's inputs are tensors of an earlier one with new contents, which differ from the last
        ones in little or in everything.
        """
        clock, start_s = _clock_s, time.monotonic()
        while len(self.samples_us) < runs:
            arguments = self._fill()
            with torch.no_grad(), fake_gpu(this_device()):
                act = self._prepare(*arguments)
                start = clock()
                value = act()
                self.samples_us.append(1e6 * (clock() - start))
            if fault := self._check(value, arguments):
                return fault
            if time.monotonic() - start_s + self.samples_us[-1] / 1e6 > share_s:
                break
        return None

    def _fill(self) -> Inputs:
        """Return a set of inputs with contents that no earlier run had."""
        self.contents.draw(self._draw.getrandbits(31))
        which = self._draw.randrange(SETS)
        self._sets[which] = tuple(map(_refill, self._sets[which], self.contents.latest))
        return self._sets[which]

    def _check(self, value: Any, arguments: Inputs) -> OutputFault | None:
        """Check the output of the last run, and that it changed none of the earlier ones."""
        mutates = self._op.mutates
        returned = all_outputs(value, arguments, mutates) if mutates else value
        fault = self.contents.check([returned], [*self.contents.current], self._version.name)
        outputs = outputs_of(value)
        if fault and self._is_repeated(outputs):
            return OutputFault(OTHER_INPUTS, NotTimedCode.CACHED)
        if fault or mutates:
            return fault
        if any(not is_bitwise_equal(before, now) for before, now in self._earlier_outputs):
            return OutputFault(REUSED_MEMORY, NotTimedCode.WRONG_OUTPUT)
        if sum(output.nbytes for output in outputs) * len(self.samples_us) <= KEPT_BYTES:
            self._earlier_outputs += [(output.clone(), output) for output in outputs]
        return None

    def _is_repeated(self, outputs: tuple[Any, ...]) -> bool:
        """Return whether a call without launches, whose output means nothing, gave the same."""
        before = self._without_launches
        if len(before) != len(outputs) or not any(map(_is_unwritten, before)):
            return False
        return all(map(is_bitwise_equal, outputs, before))


@contextmanager
def _new_memory_is_nan() -> Iterator[None]:
    """Fill what `torch.empty` returns with NaN, or with the largest integer."""
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _is_unwritten(output: torch.Tensor) -> bool:
    """Return whether an element has the value of new memory."""
    if output.dtype.is_floating_point or output.dtype.is_complex:
        return bool(output.isnan().any())
    largest = True if output.dtype is torch.bool else torch.iinfo(output.dtype).max
    return bool((output == largest).any())


def _refill(old: Any, new: Any) -> Any:
    """Return the tensor of a set with new contents, or the new value of a scalar."""
    if isinstance(old, torch.Tensor) and old.shape == new.shape:
        return old.copy_(new)
    return new
