"""Compare the outputs of one call with the oracle, chunk by chunk where they are large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from triton_magics.harness.correctness import mismatch
from triton_magics.harness.correctness.call_record import CallRecord
from triton_magics.harness.correctness.case_inputs import CaseInputs, to_device
from triton_magics.harness.correctness.judgement import Judgement
from triton_magics.harness.correctness.oracle import (
    ExpectedOutputs,
    StagedOracle,
    TorchOutputs,
    begin_expected,
    compute_torch_outputs,
)
from triton_magics.harness.correctness.row_chunks import Chunk, split_outputs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import STATED_RTOL, widen_float8
from triton_magics.harness.load import UserFault
from triton_magics.harness.process.device import CPU
from triton_magics.model import Case, CaseResult, CaseStatus, Tolerance


@dataclass(frozen=True)
class WorstPart:
    """The chunk of an output with the largest error."""

    output: int
    chunk: Chunk
    got: torch.Tensor
    value: torch.Tensor
    allowed: torch.Tensor
    judged: Judgement


@dataclass
class OutputComparison:
    """Errors of the chunks compared so far; of the oracle only the worst chunk stays in memory.

    Attributes:
        plain_allclose: whether plain allclose accepts the chunks; None: not asked.
        masks: for each output, the mask of wrong elements of each chunk; None where it is correct.
    """

    n_outputs: int
    error_share: float = 0.0
    max_abs_error: float = 0.0
    tolerance: Tolerance | None = None
    calibrated: bool = False
    plain_allclose: bool | None = True
    problem_rule: bool = True
    worst: WorstPart | None = None
    masks: list[list[torch.Tensor | None]] = field(init=False)
    problem_tolerance: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.masks = [[] for _ in range(self.n_outputs)]

    def add(
        self,
        chunk: Chunk,
        outputs: tuple[Any, ...],
        stages: Iterable[ExpectedOutputs],
    ) -> None:
        """Compare one chunk of every output by the first stage in which it is right, or the last.

        Args:
            chunk: a part of the outputs.
            outputs: all of them, whole.
            stages: what is expected of the chunk, with a wider and wider tolerance.
        """
        own = tuple(map(chunk.slice_output, outputs))
        for expected in stages:
            judgements = expected.judge_outputs(own)
            if all(judged.is_correct for judged in judgements):
                break
        self.calibrated |= expected.calibrated
        if self.tolerance is None or expected.tolerance.atol > self.tolerance.atol:
            self.tolerance = expected.tolerance
        for i, (got, judged, value, allowed, torch_outputs) in enumerate(
            zip(
                own,
                judgements,
                expected.values,
                expected.allowed,
                expected.torch_outputs,
                strict=True,
            )
        ):
            if self.plain_allclose:
                self.plain_allclose = _passes_plain_allclose(got, torch_outputs)
            if self.problem_tolerance:
                agrees = passes_problem_rule(got, torch_outputs, self.problem_tolerance)
                self.problem_rule = self.problem_rule and agrees
            self.error_share = max(self.error_share, judged.error_share)
            self.max_abs_error = max(self.max_abs_error, judged.max_abs_error)
            self.masks[i].append(judged.wrong)
            if not judged.is_correct and (
                self.worst is None or judged.error_share > self.worst.judged.error_share
            ):
                self.worst = WorstPart(i, chunk, got, value.double(), allowed, judged)

    def mask(self, wrong: WorstPart, output: torch.Tensor, chunks: list[Chunk]) -> torch.Tensor:
        """Return the mask of wrong elements of a whole output."""
        none = torch.zeros(output.shape, dtype=torch.bool, device=output.device)
        for chunk, part in zip(chunks, self.masks[wrong.output], strict=True):
            if part is not None:
                chunk.slice_output(none).copy_(part)
        return none


@dataclass
class CaseOracle:
    """The expected outputs of a case: torch's own, and for each chunk the oracle's.

    Both are where the pristine inputs are: for a small case on a GPU, on the CPU. Torch's own
    errors there allow none on a GPU.
    """

    subject: Subject
    case: Case
    inputs: CaseInputs
    torch_outputs: TorchOutputs
    _first: StagedOracle | None = None

    @cached_property
    def chunks(self) -> list[Chunk]:
        """Return the chunks of the outputs."""
        return split_outputs(self.subject.op, self.inputs.pristine, self.torch_outputs.outputs)

    @property
    def is_on_cpu(self) -> bool:
        """Return whether it judges outputs of a GPU on the CPU."""
        return self.inputs.staged is not None

    def on_device(self) -> CaseOracle:
        """Return the oracle on the device of the arguments."""
        inputs = self.inputs.beside_arguments
        torch_outputs = compute_torch_outputs(self.subject.op, inputs.pristine)
        return CaseOracle(self.subject, self.case, inputs, torch_outputs)

    def prepare(self) -> None:
        """Compute what is needed first; a failure is raised where it is needed."""
        if self.subject.op.check is None and self.chunks:
            with suppress(Exception):
                self._first = self._begin(self.chunks[0])

    def iter_expected(self, chunk: Chunk) -> Iterator[ExpectedOutputs]:
        """Yield the expected outputs of a chunk, with a wider and wider tolerance.

        What was prepared is used once.

        Raises:
            UserFault: the reference fails.
            torch.OutOfMemoryError: its inputs are too large for this GPU.
        """
        first, self._first = self._first, None
        is_prepared = first is not None and chunk is self.chunks[0]
        expected = first if first is not None and is_prepared else self._begin(chunk)
        return expected.stages(lambda: self.subject.conditioning(self.case))

    def _begin(self, chunk: Chunk) -> StagedOracle:
        op, job = self.subject.op, self.subject.job
        return begin_expected(
            op, chunk.slice_inputs(op, self.inputs.pristine), self.case, job.rtol, job.atol,
            diagnose=True,
            torch_outputs=tuple(map(chunk.slice_output, self.torch_outputs.outputs)),
            torch_errors=not self.is_on_cpu,
        )  # fmt: skip


def judge_first(oracle: CaseOracle, call: CallRecord) -> tuple[CaseOracle, CaseResult]:
    """Compare the outputs with the oracle; what isn't right on the CPU is judged on the GPU.

    Returns:
        the oracle that has judged them, and the result.
    """
    if oracle.is_on_cpu:
        with noted_if_gpu_is_needed(oracle.subject):
            result = compare_outputs(oracle, on_cpu(call))
            if result.status is CaseStatus.PASSED:
                return oracle, result
        oracle = oracle.on_device()
    return oracle, compare_outputs(oracle, call)


@contextmanager
def noted_if_gpu_is_needed(subject: Subject) -> Iterator[None]:
    """End where the reference fails on the CPU, and note it: no later case is judged there."""
    try:
        yield
    except UserFault as fault:
        subject.needs_gpu.append(str(fault))


def on_cpu(call: CallRecord) -> CallRecord:
    """Return the call with copies of its outputs on the CPU."""
    return replace(call, outputs=to_device(call.outputs, CPU))


def compare_outputs(oracle: CaseOracle, call: CallRecord) -> CaseResult:
    """Compare the outputs with the oracle, or run the op's own check if its output is random."""
    subject, case = oracle.subject, oracle.case
    if subject.op.check is not None:
        return _run_own_check(subject, case, oracle.inputs, call)
    op = subject.op
    totals = OutputComparison(
        len(oracle.torch_outputs.outputs),
        plain_allclose=True if case.dtype == "float32" else None,
        problem_tolerance=op.tolerance,
    )
    for chunk in oracle.chunks:
        totals.add(chunk, call.outputs, oracle.iter_expected(chunk))
    shared: dict[str, Any] = {
        "case": case,
        "error_share": totals.error_share,
        "max_abs_error": totals.max_abs_error,
        "tolerance": totals.tolerance,
        "calibrated": totals.calibrated,
        "problem_rule": totals.problem_rule if op.tolerance and case.has_plain_values else None,
        "seeds_rule": totals.plain_allclose,
    }
    worst = totals.worst
    if worst is None or worst.judged.wrong is None:
        return CaseResult(status=CaseStatus.PASSED, **shared)
    description = mismatch.describe(
        worst.got, worst.value, worst.allowed, worst.judged.wrong,
        case=case, hint=subject.hint, output=worst.output,
        whole=totals.mask(worst, call.outputs[worst.output], oracle.chunks),
        start=(worst.chunk.dim or 0, worst.chunk.start),
    )  # fmt: skip
    error = call.outside or call.race
    return CaseResult(status=CaseStatus.WRONG_VALUES, mismatch=description, error=error, **shared)


def _run_own_check(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord
) -> CaseResult:
    """Run the op's own check of its output.

    It may call the version again where the values are plain: other seeds and parameters are tried
    in these cases, and need not be in all others.
    """
    assert subject.op.check
    again = subject.call_again if case.has_plain_values else None
    # An op's own check need not know what to say about no elements.
    message = None if case.is_empty else subject.op.check(inputs.pristine, call.value, again)
    rtol = STATED_RTOL.get(case.dtype, 0.0)
    return CaseResult(
        case=case, status=CaseStatus.WRONG_VALUES if message else CaseStatus.PASSED,
        reason=message, calibrated=True, error_share=None if message else 0.0,
        tolerance=Tolerance(rtol=rtol, atol=0.0, origin="the op's own check"),
        error=(call.outside or call.race) if message else None,
    )  # fmt: skip


def passes_problem_rule(
    got: torch.Tensor, torch_outputs: torch.Tensor, tolerance: Mapping[str, float]
) -> bool:
    """Return whether a problem's own rule accepts an output, against torch's in the same dtype.

    An element agrees if it is within atol + rtol * |torch's|; NaN agrees with NaN.
    """
    if got.shape != torch_outputs.shape:
        return False
    expected = torch_outputs.double()
    agrees = torch.isclose(
        got.double(), expected, atol=tolerance.get("atol", 0.0), rtol=tolerance.get("rtol", 0.0),
        equal_nan=True,
    )  # fmt: skip
    return bool(agrees.double().mean() >= tolerance.get("matched_ratio", 1.0))


def _passes_plain_allclose(got: torch.Tensor, torch_outputs: torch.Tensor) -> bool:
    """Return whether plain allclose (rtol and atol 1e-5) accepts it; another dtype never passes."""
    if got.dtype != torch_outputs.dtype:
        return False
    if not got.dtype.is_floating_point:
        return torch.equal(got, torch_outputs)
    return torch.allclose(*widen_float8(got, torch_outputs), atol=1e-5, rtol=1e-5, equal_nan=True)
