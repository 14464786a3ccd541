"""The verdict of a validation from the results of its cases, or from those of its parts."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence

from triton_magics.model.base import CaseStatus, Status
from triton_magics.model.case import BESIDE, Case
from triton_magics.model.coverage import PlanScope
from triton_magics.model.validation import (
    CaseResult,
    ComputedBy,
    FailurePattern,
    TorchWork,
    Validation,
)

DTYPE, SHAPE, REGIME, SPECIAL = "dtype", "shape", "regime", "special"  # factors of a design
LAYOUT, SCALAR = "layout of ", "scalar "  # with the name of the tensor or scalar


def join_parts(parts: Sequence[Validation], order: Sequence[Case]) -> Validation:
    """Return the validation whose cases were run in parts, each by a worker of its own.

    Args:
        parts: the verdict of each part, with its cases.
        order: the planned cases; others, which the results called for, come after them.
    """
    first = parts[0]
    places = {case: i for i, case in enumerate(order)}
    results = [result for part in parts for result in part.cases]
    cases = tuple(sorted(results, key=lambda result: places.get(result.case, len(places))))
    own_status = next((part for part in parts if part.error and not part.failed_cases), None)
    status, message = overall_verdict(first, cases)
    failed = next((result for result in cases if result.status.failed), None)
    return first.evolve(
        status=own_status.status if own_status else status,
        message=own_status.message if own_status else message,
        error=own_status.error if own_status else failed and failed.error,
        cases=cases,
        scope=count_checked(first.scope, cases),
        triton_kernels=_union(part.triton_kernels for part in parts),
        torch_ops=_union(part.torch_ops for part in parts),
        computed_by=share_work(cases) if any(part.computed_by for part in parts) else None,
        unreached=tuple(
            line
            for line in dict.fromkeys(line for part in parts for line in part.unreached)
            if all(line in part.unreached for part in parts if part.passed)
        ),
        pattern=_join_patterns([part.pattern for part in parts]),
        duration_s=max((part.duration_s or 0.0 for part in parts), default=None),
    )


def _join_patterns(patterns: Sequence[FailurePattern | None]) -> FailurePattern | None:
    """Return the condition that separates the cases of every part, if it is one and the same."""
    own = [pattern for pattern in patterns if pattern is not None]
    if len(own) < len(patterns) or len({pattern.condition for pattern in own}) != 1:
        return None
    counts = [name for name in FailurePattern.model_fields if name.startswith("n_")]
    return own[0].evolve(**{n: sum(getattr(each, n) for each in own) for n in counts})


def _union(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(names)))


def overall_verdict(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Return the status and a message: passed, or the first reason against it.

    Passed means: no case failed, and every size that can run here passed in every dtype that can.
    """
    failed = next((r for r in results if r.status.failed), None)
    if failed:
        kinds = {
            CaseStatus.COMPILE_ERROR: Status.COMPILE_ERROR,
            CaseStatus.RUNTIME_ERROR: Status.RUNTIME_ERROR,
            CaseStatus.OUT_OF_MEMORY: Status.OUT_OF_MEMORY,
        }
        return kinds.get(failed.status, Status.FAILED), None
    # A guard that returns at once without elements is no evidence.
    ran = [r for r in results if r.status is not CaseStatus.NOT_RUN and not r.case.is_empty]
    if ran and all(r.status is CaseStatus.REJECTED for r in ran):
        return Status.REJECTED, f"it rejects every input: {ran[0].reason}"
    for dtype in base.dtypes:
        own = [r for r in ran if r.case.dtype == dtype]
        refused = next((r for r in own if r.case.size and r.status is CaseStatus.REJECTED), None)
        if refused:
            return Status.REJECTED, f"it rejects {refused.case.label}: {refused.reason}"
    if not any(r.status is CaseStatus.PASSED for r in ran):
        return _nothing_ran(base, results)
    return Status.PASSED, None


def _nothing_ran(base: Validation, results: tuple[CaseResult, ...]) -> tuple[Status, str | None]:
    """Return the verdict on a version of which no case ran: only a GPU may be able to."""
    if base.device_kind == "interpreter" and results:
        return Status.NO_GPU, results[0].reason
    return Status.FAILED, "no case could be run here"


def share_work(results: tuple[CaseResult, ...]) -> ComputedBy | None:
    """Return the shares of the work, each the largest of all cases; None if no case passed."""
    judged = (CaseStatus.PASSED, CaseStatus.NOT_TRITON)
    if not any(result.status in judged for result in results):
        return None
    largest: dict[tuple[str, int | None], TorchWork] = {}
    for work in (work for result in results for work in result.torch_work):
        place = (work.operation, work.line)
        if place not in largest or work.share > largest[place].share:
            largest[place] = work
    total = sum(work.share for work in largest.values())
    return ComputedBy(kernel_share=max(1 - total, 0.0), torch_work=tuple(largest.values()))


def count_checked(scope: PlanScope | None, results: Iterable[CaseResult]) -> PlanScope | None:
    """Return the scope with the combinations of the cases that ran and were not refused."""
    if scope is None:
        return None
    unchecked = (CaseStatus.NOT_RUN, CaseStatus.REJECTED)
    checked = [r.case for r in results if r.status not in unchecked]
    return scope.evolve(n_covered=count_combinations(checked, scope.strength))


def count_combinations(cases: Iterable[Case], strength: int) -> int:
    """Return how many combinations of values the cases of a design have."""
    own = [case for case in cases if case.shape_class not in ("", BESIDE)]
    names = sorted({name for case in own for name, _ in case.layouts})
    rows = [_values(case, names) for case in own]
    return len({sub for row in rows for sub in itertools.combinations(row, strength)})


def _values(case: Case, names: Sequence[str]) -> list[tuple[str, Hashable]]:
    """Return the value of each factor that a case has."""
    chosen: list[tuple[str, Hashable]] = [
        (DTYPE, case.dtype), (SHAPE, case.shape_class),
        (REGIME, case.regime), (SPECIAL, case.special),
    ]  # fmt: skip
    chosen += [(LAYOUT + name, case.layout_of(name)) for name in names]
    return chosen + [(SCALAR + name, value) for name, value in case.scalars]
