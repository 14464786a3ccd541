"""Which cases a machine without a GPU does not run, and why."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import torch

from triton_magics.model import Case, CaseResult, CaseStatus
from triton_magics.worker.cases import OWN, make_pristine
from triton_magics.worker.launches import watching
from triton_magics.worker.pretend import pretending
from triton_magics.worker.subject import Subject

_NO_BFLOAT16 = "Triton's interpreter computes bfloat16 wrongly without a word; a GPU is needed"
_ONE_MEDIUM = "the interpreter runs medium once, in the first dtype"
_NO_LARGE = "too large for the interpreter: about 4 s a launch and more"
_OWN_ELEMENTS = 2**20  # medium: what the interpreter runs of a user's own shapes


def never_here(case: Case, device: torch.device, first_dtype: str) -> str | None:
    """Why a case is never run on this device, whatever the version; None where it is."""
    if device.type != "cpu":
        return None
    if case.dtype == "bfloat16":
        return _NO_BFLOAT16
    if case.size == "large" or (case.size == OWN and math.prod(case.shape) > _OWN_ELEMENTS):
        return _NO_LARGE
    if case.size == "medium" and case.dtype != first_dtype:
        return _ONE_MEDIUM
    return None


@dataclass
class Meter:
    """CPU time of a validation and its cases: what else the machine does must not change a verdict.

    Attributes:
        cases: seconds of each that was run.
    """

    cases: dict[Case, float] = field(default_factory=dict)
    _begun_s: float = field(default_factory=time.process_time)

    @property
    def spent_s(self) -> float:
        """Seconds so far."""
        return time.process_time() - self._begun_s

    @contextmanager
    def measuring(self, case: Case) -> Iterator[None]:
        """Counts what a case takes."""
        before_s = self.spent_s
        yield
        self.cases[case] = self.spent_s - before_s


def why_not(subject: Subject, case: Case, results: list[CaseResult], meter: Meter) -> str | None:
    """Why a case is not run here, or None. In the interpreter time is short and bfloat16 wrong.

    Args:
        subject: what is validated.
        case: the next one.
        results: of those before it.
        meter: what they took.
    """
    if not subject.interpreted:
        return None
    first = (subject.job.dtypes or subject.op.dtypes)[0]
    if never := never_here(case, subject.device, first):
        return never
    budget = subject.job.budget_s
    if budget is not None and meter.spent_s > budget and case.size != "small":
        return f"the interpreter's budget of {budget:g} s of CPU time was used up"
    if budget is not None and case.size == "medium":
        small = [meter.cases.get(r.case, 0.0) for r in results if r.case.size == "small"]
        if small and meter.spent_s + _grown(subject, small[0]) > budget:
            return f"it would have passed the interpreter's budget of {budget:g} s of CPU time"
    return None


def _grown(subject: Subject, small_s: float) -> float:
    """A guess of medium's seconds from small's: as programs grow, or as a product's loops do."""
    small, medium = subject.op.sizes["small"], subject.op.sizes["medium"]
    if subject.op.op_class == "matmul":
        return small_s * math.prod(b / max(a, 1) for a, b in zip(small, medium, strict=False))
    programs = [_programs(subject, Case(shape=s, dtype="float32", seed=0)) for s in (small, medium)]
    return small_s * programs[1] / programs[0]


def _programs(subject: Subject, case: Case) -> int:
    """Program instances of one call, without running them; 1 where it can't be told."""
    given = make_pristine(subject.op, case, subject.device)
    with (
        torch.no_grad(), pretending(subject.device), watching(suppress=True) as seen,
        suppress(BaseException),  # it needs what its kernels would have made
    ):  # fmt: skip
        subject.version.call(*given)
    return max(seen.programs, 1)


def not_run(case: Case, reason: str) -> CaseResult:
    """A case that was planned and not run."""
    return CaseResult(case=case, status=CaseStatus.NOT_RUN, reason=reason)
