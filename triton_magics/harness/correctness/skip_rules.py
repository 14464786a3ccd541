"""Rules for the cases that the interpreter skips, with reasons."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from triton_magics import operators
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.process import subject_process
from triton_magics.harness.process.device import CPU
from triton_magics.languages.kernel_runtime import TOO_SLOW, KernelRuntime
from triton_magics.model import CUSTOM_SIZE, Case, CaseResult, CaseStatus

_NO_LARGE = "too large for the CPU: an interpreter takes 4 s a launch and more"
MAX_FAILED = 12  # a wrong case takes ten times as long as a right one, and says little more
EXTENT_SHARE = 0.1  # of the budget, for one call at an extent
MAX_EXTENT_PROGRAMS = 3000  # of a call at an extent; half a millisecond each and more
MAX_ELEMENTS = 2**20  # of the largest input of a size or a user's own shape


def unsupported_reason(
    op: operators.Op, case: Case, device: torch.device, first_dtype: str, runtime: KernelRuntime
) -> str | None:
    """Return why this device runs the case for no version; None if it can run it.

    The interpreter runs the smallest size in every dtype, the larger ones in the first.
    """
    if device != CPU:
        return None
    if refused := runtime.refused_on_cpu(case.dtype):
        return f"{refused}; a GPU is needed"
    planned = case.size or (case.shape_class and not case.extent)
    if planned and operators.largest_input(op, case.shape) > MAX_ELEMENTS:
        return _NO_LARGE
    if _is_larger_size(op, case) and case.dtype != first_dtype:
        return f"the CPU runs {case.size} once, in the first dtype"
    return None


def _is_larger_size(op: operators.Op, case: Case) -> bool:
    """Return whether the case is one of the op's sizes, and not the smallest."""
    return case.size not in (None, CUSTOM_SIZE, operators.smallest_size(op))


def cpu_s() -> float:
    """Return the CPU time of this process and of the subject process, seconds."""
    link = subject_process.link()
    return time.process_time() + (link.cpu_s if link else 0.0)


@dataclass
class CpuTimeMeter:
    """CPU time of a validation and its cases; other load must not change a verdict.

    Attributes:
        cases: seconds of each case that ran.
    """

    cases: dict[Case, float] = field(default_factory=dict)
    _started_s: float = field(default_factory=cpu_s)

    @property
    def spent_s(self) -> float:
        """Return the seconds so far."""
        return cpu_s() - self._started_s

    @contextmanager
    def measure(self, case: Case) -> Iterator[None]:
        """Measure the CPU time of a case."""
        before_s = self.spent_s
        yield
        self.cases[case] = self.spent_s - before_s


def skip_reason(
    subject: Subject, case: Case, results: list[CaseResult], meter: CpuTimeMeter
) -> str | None:
    """Return why a case is skipped, or None; a GPU skips none unless many failed.

    Args:
        subject: the version under validation.
        case: the next case.
        results: the results of the earlier cases.
        meter: their CPU time.
    """
    if case.shape_class and _are_failed(results, MAX_FAILED):
        return f"{MAX_FAILED} cases have failed already"
    if not subject.is_interpreted:
        return None
    first = (subject.job.dtypes or subject.op.dtypes)[0]
    op, budget = subject.op, subject.job.budget_s
    if unsupported := unsupported_reason(op, case, subject.device, first, subject.runtime):
        return unsupported
    if case.extent and (too_slow := _slow_extent_reason(subject, case, results)):
        return too_slow
    smallest = operators.smallest_size(op)
    if budget is not None and meter.spent_s > budget and case.size != smallest:
        return f"the interpreter's budget of {budget:g} s of CPU time is spent"
    if budget is not None and _is_larger_size(op, case):
        small = [meter.cases.get(r.case, 0.0) for r in results if r.case.size == smallest]
        if small and meter.spent_s + _estimate_s(subject, case, small[0]) > budget:
            return f"it would exceed the interpreter's budget of {budget:g} s of CPU time"
    return None


def _are_failed(results: Sequence[CaseResult], n: int) -> bool:
    """Return whether at least n cases have failed; the statuses that occur are few."""
    counts = Counter(result.status for result in results)
    return sum(count for status, count in counts.items() if status.failed) >= n


def limit_of_call(subject: Subject, case: Case) -> float | None:
    """Return the CPU seconds after which the interpreter ends a call; None if it need not.

    The time at an extent depends on the loops of a version, so that nothing else can tell it.
    """
    budget = subject.job.budget_s
    limited = case.extent and subject.is_interpreted and budget is not None
    return EXTENT_SHARE * budget if limited and budget is not None else None


def _slow_extent_reason(subject: Subject, case: Case, results: list[CaseResult]) -> str | None:
    """Return why the interpreter would take long for an extent, or None.

    A smaller extent took too long, or the version launches too many programs.
    """
    n, columns = math.prod(case.shape), case.shape[-1]
    ended = (r.case for r in results if r.case.extent and r.reason and TOO_SLOW in r.reason)
    for smaller in ended:
        if smaller.shape[-1] <= columns and math.prod(smaller.shape) <= n:
            return f"the smaller {smaller.label} takes the interpreter too long"
    if (programs := count_programs(subject, case)) > MAX_EXTENT_PROGRAMS:
        return f"the interpreter takes too long for its {programs:,} programs"
    return None


def _estimate_s(subject: Subject, case: Case, small_s: float) -> float:
    """Estimate the seconds of a size from those of the smallest, by its programs or loops."""
    small = operators.smallest_shape(subject.op)
    if subject.op.op_class == "matmul":
        return small_s * math.prod(b / max(a, 1) for a, b in zip(small, case.shape, strict=False))
    cases = [case.evolve(shape=shape) for shape in (small, case.shape)]
    programs = [count_programs(subject, case) for case in cases]
    return small_s * programs[1] / programs[0]


def count_programs(subject: Subject, case: Case) -> int:
    """Return the number of program instances of one call without running them; 1 if unknown."""
    return max(subject.calls.dry_run(subject.make_inputs(case).arguments).programs, 1)


def not_run_result(case: Case, reason: str) -> CaseResult:
    """Return the result of a planned case that was not run."""
    return CaseResult(case=case, status=CaseStatus.NOT_RUN, reason=reason)
