"""The values of one call against the oracle, part by part where the output is large."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from triton_magics.model import Case, CaseResult, CaseStatus, Tolerance
from triton_magics.worker import mismatch, oracle
from triton_magics.worker.cases import Inputs
from triton_magics.worker.cuts import Cut, cuts_of
from triton_magics.worker.oracle import Expected, Judgement, Native
from triton_magics.worker.subject import Call, Subject, plain


@dataclass(frozen=True)
class Wrong:
    """The part of an output that is furthest off."""

    output: int
    cut: Cut
    got: torch.Tensor
    value: torch.Tensor
    allowed: torch.Tensor
    judged: Judgement


@dataclass
class Comparison:
    """What the parts have shown so far; of the oracle only the worst part is kept.

    Attributes:
        masks: for each output, where each part is wrong; None where it is right.
    """

    n_outputs: int
    error_share: float = 0.0
    max_abs_error: float = 0.0
    tolerance: Tolerance | None = None
    calibrated: bool = False
    seeds_rule: bool = True
    worst: Wrong | None = None
    masks: list[list[torch.Tensor | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.masks = [[] for _ in range(self.n_outputs)]

    def add(self, cut: Cut, outputs: tuple[Any, ...], expected: Expected) -> None:
        """Judges one part of every output."""
        self.calibrated |= expected.calibrated
        if self.tolerance is None or expected.tolerance.atol > self.tolerance.atol:
            self.tolerance = expected.tolerance
        for i, (output, value, allowed, native) in enumerate(
            zip(outputs, expected.values, expected.allowed, expected.native, strict=True)
        ):
            got = cut.of(output)
            judged = oracle.judge(got, value, allowed)
            self.seeds_rule = self.seeds_rule and _seeds_rule(got, native)
            self.error_share = max(self.error_share, judged.error_share)
            self.max_abs_error = max(self.max_abs_error, judged.max_abs_error)
            self.masks[i].append(judged.wrong)
            if not judged.right and (
                self.worst is None or judged.error_share > self.worst.judged.error_share
            ):
                self.worst = Wrong(i, cut, got, value, allowed, judged)

    def mask(self, wrong: Wrong, output: torch.Tensor, cuts: list[Cut]) -> torch.Tensor:
        """Where a whole output is wrong."""
        none = torch.zeros(output.shape, dtype=torch.bool, device=output.device)
        for cut, part in zip(cuts, self.masks[wrong.output], strict=True):
            if part is not None:
                cut.of(none).copy_(part)
        return none


def compared(
    subject: Subject,
    case: Case,
    inputs: Inputs,
    call: Call,
    native: Native,
    *,
    conditioned: bool = True,
) -> CaseResult:
    """The values against the oracle, or the op's own check where its output is random."""
    if subject.op.check is not None:
        return _checked(subject, case, inputs, call)
    cuts = cuts_of(subject.op, inputs.pristine, native.outputs)
    seen = Comparison(len(native.outputs))
    op, job = subject.op, subject.job
    for cut in cuts:
        expected = oracle.expect(
            op, cut.of_inputs(op, inputs.pristine), case, job.rtol, job.atol,
            conditioned=conditioned, known=tuple(map(cut.of, native.outputs)),
        )  # fmt: skip
        seen.add(cut, call.outputs, expected)
    shared: dict[str, Any] = {
        "case": case,
        "error_share": seen.error_share,
        "max_abs_error": seen.max_abs_error,
        "tolerance": seen.tolerance,
        "calibrated": seen.calibrated,
        "seeds_rule": seen.seeds_rule if case.dtype == "float32" else None,
    }
    worst = seen.worst
    if worst is None or worst.judged.wrong is None:
        return CaseResult(status=CaseStatus.PASSED, **shared)
    found = mismatch.describe(
        worst.got, worst.value, worst.allowed, worst.judged.wrong,
        case=case, source=subject.source, output=worst.output,
        whole=seen.mask(worst, call.outputs[worst.output], cuts),
        start=(worst.cut.dim or 0, worst.cut.start),
    )  # fmt: skip
    error = call.outside(subject)
    return CaseResult(status=CaseStatus.WRONG_VALUES, mismatch=found, error=error, **shared)


def _checked(subject: Subject, case: Case, inputs: Inputs, call: Call) -> CaseResult:
    """What the op's own check says."""
    assert subject.op.check
    message = subject.op.check(inputs.pristine, call.value, lambda *x: plain(subject, x))
    rtol = oracle.STATED.get(case.dtype, 0.0)
    return CaseResult(
        case=case, status=CaseStatus.WRONG_VALUES if message else CaseStatus.PASSED,
        reason=message, calibrated=True, error_share=None if message else 0.0,
        tolerance=Tolerance(rtol=rtol, atol=0.0, origin="the op's own check"),
        error=call.outside(subject) if message else None,
    )  # fmt: skip


def _seeds_rule(got: torch.Tensor, native: torch.Tensor) -> bool:
    """`allclose` with torch's own output at 1e-5, as the spec has it; not with another dtype."""
    if got.dtype != native.dtype:
        return False
    return torch.allclose(got, native, atol=1e-5, rtol=1e-5, equal_nan=True)
