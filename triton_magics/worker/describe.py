"""What an op's file declares, after its reference ran once: is it an op at all?"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import Answer, DescribeJob, OpDescription
from triton_magics.model import Case
from triton_magics.worker.cases import DTYPES, make_pristine, same_bits
from triton_magics.worker.cuts import cuts_of
from triton_magics.worker.load import UserFault, load_op
from triton_magics.worker.oracle import evaluate, upcast
from triton_magics.worker.report import Reporter
from triton_magics.worker.resources import this_device


def run(job: DescribeJob, report: Reporter) -> tuple[Answer, bool]:
    """Loads the op and calls its reference, in its first dtype and in float64."""
    report.stage("loading the reference")
    op = load_op(job.op)
    unknown = [d for d in op.dtypes if d not in DTYPES]
    if unknown:
        raise UserFault(f"DTYPES names {unknown[0]!r}; known: {', '.join(DTYPES)}")
    shape = min(op.shapes, key=lambda s: torch.Size(s).numel(), default=op.sizes["small"])
    case = Case(shape=shape, dtype=op.dtypes[0], seed=1)
    try:
        outputs, flops = _try_out(op, case)
    except UserFault:
        raise
    except Exception as error:
        raise UserFault(
            f"{op.name}: the reference failed on {case.label}: {type(error).__name__}: {error}"
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
    ), True


def _try_out(op: ops.Op, case: Case) -> tuple[tuple[str, ...], int | None]:
    """Forms of the outputs, and the operations of one call."""
    inputs = make_pristine(op, case, this_device())
    if out_of_range := [i for i in op.mutates if i >= len(inputs)]:
        raise UserFault(f"{op.name}: MUTATES names input {out_of_range[0]} of {len(inputs)}")
    first = evaluate(op, inputs)[1]
    _check_exact(op, inputs)
    _check_float64(op, inputs)
    again = evaluate(op, inputs)[1]
    if op.check is None and not all(map(same_bits, first, again)):
        raise UserFault(
            f"{op.name}: the reference gave two answers for the same inputs; "
            "define check(inputs, output) for an op whose output is random"
        )
    _check_independent(op)
    forms = tuple(f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in first)
    return forms, int(op.flops(*inputs)) if op.flops else None


def _check_float64(op: ops.Op, inputs: tuple[Any, ...]) -> None:
    """The oracle is the reference in float64: it must take that, and must not round it away."""
    fine = tuple(_between_floats(x) for x in upcast(inputs))
    try:
        exact = evaluate(op, fine)[1]
    except UserFault as error:
        cause = error.__cause__ or error
        raise UserFault(
            f"{op.name}: the reference must also work in float64, where the right answer is "
            f"computed; it raised {type(cause).__name__}: {cause}"
        ) from error
    rounded = evaluate(op, tuple(_rounded(x) for x in fine))[1]
    moves = [not torch.equal(a, b) for a, b in zip(exact, rounded, strict=True)]
    if op.check is None and exact[0].dtype.is_floating_point and not any(moves):
        raise UserFault(
            f"{op.name}: the reference computes in float32 even where its inputs are float64, so "
            "it can't be the oracle; write x.to(torch.promote_types(x.dtype, torch.float32)) "
            "instead of x.float()"
        )


def _check_exact(op: ops.Op, inputs: tuple[Any, ...]) -> None:
    """What stands in for the reference in float64 must be the same."""
    if op.exact is None:
        return
    double = upcast(inputs)
    whole = evaluate(dataclasses.replace(op, exact=None), double)[1]
    found = evaluate(op, double)[1]
    same = [a.shape == b.shape and torch.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True)
            for a, b in zip(whole, found, strict=False)]  # fmt: skip
    if len(whole) != len(found) or not all(same):
        raise UserFault(
            f"{op.name}: exact(...) is not reference(...) in float64; leave it out, or mend it"
        )


def _check_independent(op: ops.Op) -> None:
    """A large case is judged in the parts that INDEPENDENT allows: they must give the whole."""
    if not op.independent:
        return
    case = Case(shape=op.sizes["small"], dtype=op.dtypes[0], seed=1)
    inputs = upcast(make_pristine(op, case, this_device()))
    if len(op.independent) != len(inputs):
        raise UserFault(
            f"{op.name}: INDEPENDENT says something of {len(op.independent)} inputs, there are "
            f"{len(inputs)}"
        )
    whole = evaluate(op, inputs)[1]
    for cut in cuts_of(op, inputs, whole, part=max(t.numel() for t in whole) // 3):
        try:
            part = evaluate(op, cut.of_inputs(op, inputs))[1]
            same = all(torch.allclose(p, cut.of(w)) for p, w in zip(part, whole, strict=True))
        except (UserFault, RuntimeError, IndexError):
            same = False
        if not same:
            raise UserFault(
                f"{op.name}: INDEPENDENT = {op.independent} does not hold: the reference of a "
                f"part of its inputs is not that part of its output at {case.label}; leave "
                "it out, or name the dimensions along which nothing depends on the rest"
            )


def _between_floats(x: Any) -> Any:
    """Floating values that float32 does not have."""
    return x * (1 + 1e-9) if _floating(x) else x


def _rounded(x: Any) -> Any:
    return x.float().double() if _floating(x) else x


def _floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point
