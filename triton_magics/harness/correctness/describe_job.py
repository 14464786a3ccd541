"""Describe job: load an op's file, run its reference, and return its declarations."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from triton_magics import exception_text, operators
from triton_magics.execution.job_answers import Answer, OpDescription
from triton_magics.execution.job_requests import DescribeJob
from triton_magics.harness.correctness.case_inputs import DTYPES, make_pristine
from triton_magics.harness.correctness.oracle import evaluate, upcast
from triton_magics.harness.correctness.reference_checks import check_float64, check_reference
from triton_magics.harness.correctness.row_chunks import split_outputs
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault, load_op
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.reporter import Reporter
from triton_magics.model import BackwardFacts, Case


def run(job: DescribeJob, report: Reporter) -> tuple[Answer, bool]:
    """Load the op and call its reference, in its first dtype and in float64."""
    report.stage("loading the reference", patience_s=job.patience_s)
    op = load_op(job.op)
    unknown = [d for d in op.dtypes if d not in DTYPES]
    if unknown:
        raise UserFault(f"DTYPES names {unknown[0]!r}; known: {', '.join(DTYPES)}")
    shape = min(
        op.shapes, key=lambda s: torch.Size(s).numel(), default=operators.smallest_shape(op)
    )
    case = Case(shape=shape, dtype=op.dtypes[0], seed=1)
    try:
        outputs, flops = _run_reference(op, case)
    except UserFault:
        raise
    except BaseException as error:  # exit() too: the reference is the user's own
        raise UserFault(
            f"{op.name}: the reference failed on {case.label}: {exception_text.one_line(error)}"
        ) from error
    return OpDescription(
        name=op.name,
        sizes=dict(op.sizes),
        shapes=op.shapes,
        dtypes=op.dtypes,
        signature=str(inspect.signature(op.reference)),
        doc=op.doc,
        outputs=outputs,
        flops=flops,
        backward=_backward(op),
    ), True


def _backward(op: operators.Op) -> BackwardFacts | None:
    try:
        derived = operators.BackwardOp(f"{op.name}_backward", op)
    except operators.NoGradient:
        return None
    return BackwardFacts(output_gradients=derived.output_gradients, returned=derived.gradients)


def _run_reference(op: operators.Op, case: Case) -> tuple[tuple[str, ...], int | None]:
    """Return the shape and dtype of each output, and the operations of one call."""
    inputs = make_pristine(op, case, this_device())
    if out_of_range := [i for i in op.mutates if i >= len(inputs)]:
        raise UserFault(f"{op.name}: MUTATES names input {out_of_range[0]} of {len(inputs)}")
    first = evaluate(op, inputs)[1]
    _check_exact(op, inputs)
    check_float64(op, this_device())
    check_reference(op, this_device())
    _check_independent(op)
    forms = tuple(f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in first)
    return forms, int(op.flops(*inputs)) if op.flops else None


def _check_exact(op: operators.Op, inputs: tuple[Any, ...]) -> None:
    """Check that `exact` equals the reference in float64.

    Raises:
        UserFault: it does not.
    """
    if op.exact is None:
        return
    double = upcast(inputs)
    whole = evaluate(op, double, with_exact=False)[1]
    exact = evaluate(op, double)[1]
    same = [a.shape == b.shape and _is_close(a, b, 1e-12)
            for a, b in zip(whole, exact, strict=False)]  # fmt: skip
    if len(whole) != len(exact) or not all(same):
        raise UserFault(
            f"{op.name}: exact(...) differs from reference(...) in float64; fix it, or remove it"
        )


def _check_independent(op: operators.Op) -> None:
    """Check INDEPENDENT: the reference of a chunk must be that chunk of the reference.

    Raises:
        UserFault: it is not.
    """
    if not op.independent:
        return
    case = Case(shape=operators.smallest_shape(op), dtype=op.dtypes[0], seed=1)
    inputs = upcast(make_pristine(op, case, this_device()))
    if len(op.independent) != len(inputs):
        raise UserFault(
            f"{op.name}: INDEPENDENT has {len(op.independent)} entries for {len(inputs)} inputs"
        )
    whole = evaluate(op, inputs)[1]
    for chunk in split_outputs(op, inputs, whole, max_elements=max(t.numel() for t in whole) // 3):
        try:
            part = evaluate(op, chunk.slice_inputs(op, inputs))[1]
            same = all(
                _is_close(p, chunk.slice_output(w), 1e-8) for p, w in zip(part, whole, strict=True)
            )
        except (UserFault, RuntimeError, IndexError):
            same = False
        if not same:
            raise UserFault(
                f"{op.name}: INDEPENDENT = {op.independent} does not hold: the reference of a "
                f"part of its inputs is not that part of its output at {case.label}; leave "
                "it out, or name the dimensions along which nothing depends on the rest"
            )


def _is_close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    if not is_floating(a):
        return torch.equal(a, b)
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
