"""Choose further cases for a dtype in which no case of the plan detects a lower precision.

A mean over many rows averages the errors of a lower precision away, for example. The search reads
only the reference, so the version can't influence it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import torch

from triton_magics import operators
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, CaseResult, CaseStatus

MAX_ELEMENTS = 20_000
MAX_PAIRS = 12  # of a shape and a regime
ROUNDS = 4  # of all pairs, each with other numbers; a case takes about a millisecond
REGIMES = ("normal", "x10", "large", "shifted")


def choose_calibration_cases(
    op: operators.Op,
    job: ValidateJob,
    device: torch.device,
    results: Sequence[CaseResult],
) -> tuple[Case, ...]:
    """Return one case for each dtype that needs one, if there is any that detects it.

    Named shapes and the user's own tolerance are requests for exactly these; an op with its own
    check needs no calibration.
    """
    own = job.shapes or job.rtol is not None or job.atol is not None
    if own or op.check is not None or any(r.status.failed for r in results):
        return ()
    passed = {r.case.dtype for r in results if r.status is CaseStatus.PASSED}
    conclusive = {r.case.dtype for r in results if r.is_conclusive}
    cases = (_first_sensitive(op, d, job.seed, device) for d in sorted(passed - conclusive))
    return tuple(case for case in cases if case is not None)


def _first_sensitive(op: operators.Op, dtype: str, seed: int, device: torch.device) -> Case | None:
    for case in _candidates(op, dtype, seed):
        try:
            inputs = make_pristine(op, case, device)
            expected = oracle.compute_expected(
                op, inputs, case, None, None, conditioning=oracle.Conditioning.NONE
            )
        except (UserFault, torch.OutOfMemoryError):
            continue
        if expected.calibrated:
            return case
    return None


def _candidates(op: operators.Op, dtype: str, seed: int) -> Iterator[Case]:
    """Yield small cases, few rows first: there the least is averaged."""
    draw = random.Random(f"{seed}-{dtype}")  # noqa: S311 (a choice that can be replayed)
    shapes = [s for s in op.shapes if 1 < math.prod(s) <= MAX_ELEMENTS] or [
        operators.smallest_shape(op)
    ]
    shapes.sort(key=lambda s: math.prod(s[:-1]))
    regimes = [r for r in REGIMES if not operators.skips(op, r, dtype)]
    pairs = [(shape, regime) for regime in regimes for shape in shapes[: MAX_PAIRS // len(regimes)]]
    for shape, regime in ROUNDS * pairs:
        yield Case(shape=shape, dtype=dtype, regime=regime, seed=draw.getrandbits(31))
