"""Compare a version's wrong output with that of a changed reference; count the evidence in bits."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from triton_magics import operators
from triton_magics.harness.correctness.fault_changes import evaluate_change, iter_changes
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.harness.correctness.judgement import finite_part
from triton_magics.harness.correctness.reference_changes import Change, Inputs
from triton_magics.model import Cause, CauseCode

LARGE_ELEMENTS = 100_000  # of an input: only extents are tried
LEAST_MOVE = 2.0**-7  # of a parameter, relative: rounding to bfloat16 may give half of it
_BITS_OF_PARAMETER = 14.0
_MOST_BITS = 16.0  # of one element
_ROUNDS = 10  # of a fit


@dataclass(frozen=True)
class Match:
    """A change that gives a sample's output, with its parameter and the evidence in bits."""

    change: Change
    amount: float | None
    bits: float
    rows: int

    @property
    def cause(self) -> Cause:
        """Return the change as a cause."""
        text = self.change.text
        if self.amount is not None:
            text = text.format(f"{self.amount:.4g}")
        return Cause(code=self.change.code, as_if=text)


Matches = dict[str, list[Match]]
"""Changes by key, with what each sample shows for it."""


def bits_of(matches: list[Match]) -> float:
    """Return the evidence of all samples, less that for the parameters."""
    amounts = [m.amount for m in matches if m.amount is not None]
    same = all(math.isclose(a, amounts[0], rel_tol=1e-3, abs_tol=1e-9) for a in amounts)
    if amounts and (len(amounts) == 1 or not same):
        matches = [m for m in matches if m.rows > 1]  # one factor fits any wrong single row
    total = sum(m.bits + m.change.bits - _BITS_OF_PARAMETER * m.change.n_read for m in matches)
    if not amounts:
        return total
    return total - _BITS_OF_PARAMETER * (1 if same else len(amounts))


def matches_of(
    op: operators.Op,
    sample: FaultSample,
    with_parameter: bool,
    deadline: float,
    keys: Mapping[str, list[Match]] | None,
) -> dict[str, Match]:
    """Return by key the changes that give a sample's output; only of these keys, if given."""
    matches: dict[str, Match] = {}
    large = max(t.numel() for t in sample.inputs if isinstance(t, torch.Tensor)) > LARGE_ELEMENTS
    for inputs in _precisions(sample):
        for change in iter_changes(op, sample, inputs):
            is_known = change.key in matches or (keys is not None and change.key not in keys)
            if is_known or (change.start is not None) is not with_parameter:
                continue
            if large and change.code is not CauseCode.PARTIAL_EXTENT:
                continue
            if time.thread_time() > deadline:
                return {}
            with contextlib.suppress(RuntimeError, TypeError, ValueError, IndexError):
                before = keys[change.key][0].amount if keys else None
                if match := _try(op, sample, inputs, change, before):  # else it does not fit here
                    matches[change.key] = match
    return matches


def _precisions(sample: FaultSample) -> Iterator[Inputs]:
    """Yield the inputs in float64; in float32 too, where an intermediate value may overflow."""
    yield sample.inputs
    if sample.overflows or not sample.case.has_plain_values:
        yield in_float32(sample.inputs)


def in_float32(inputs: Inputs) -> Inputs:
    """Return the inputs with their floating-point tensors in float32."""
    return tuple(
        x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs
    )


def _try(
    op: operators.Op,
    sample: FaultSample,
    inputs: Inputs,
    change: Change,
    before: float | None = None,
) -> Match | None:
    """Return the match of one change, its parameter fitted; None if it does not give the output.

    Args:
        op: with the reference.
        sample: the version's output.
        inputs: in float64 or float32.
        change: of the reference.
        before: its parameter on another sample, which is tried first.
    """
    if before is not None:
        bits = _evidence(sample, evaluate_change(op, inputs, change, before), change)
        if bits is not None:
            return Match(change, before, bits, sample.rows)
    amount = change.start
    if amount is not None:
        amount = _fit(op, sample, inputs, change, amount)
        if amount is None:
            return None
    bits = _evidence(sample, evaluate_change(op, inputs, change, amount or 0.0), change)
    return None if bits is None else Match(change, amount, bits, sample.rows)


def _slack(sample: FaultSample, output: torch.Tensor, i: int) -> torch.Tensor:
    """Return the error within which the version's output is that of a changed reference."""
    scale = finite_part(output).square().mean().sqrt()
    own = sample.unit * finite_part(output).abs() + 1e-6 * scale
    return 2 * finite_part(sample.allowed[i]).expand_as(output) + own + 1e-30


def _evidence(
    sample: FaultSample, outputs: tuple[torch.Tensor, ...], change: Change
) -> float | None:
    """Return how many bits a changed reference explains; None where it is wrong anywhere.

    Every read outside the memory gives NaN, so NaN is no evidence of other strides.
    """
    is_place = change.code is CauseCode.WRONG_STRIDE
    total = 0.0
    for i, (output, got) in enumerate(zip(outputs, sample.got, strict=True)):
        if output.shape != got.shape:
            return None
        slack = _slack(sample, output, i)
        same = (output == got) | (output.isnan() & got.isnan())
        beyond = output.abs() >= 0.999 * sample.largest
        same |= got.isinf() & beyond & (output.sign() == got.sign())
        same |= got.isfinite() & output.isfinite() & ((output - got).abs() <= slack)
        if not bool(same.all()):
            return None
        error = (sample.expected[i] - got).abs() / slack
        error = torch.nan_to_num(error, nan=1.0 if is_place else 2.0, posinf=4.0)
        total += float(error.clamp(min=1.0).log2().clamp(max=_MOST_BITS).sum())
    return total


def _fit(
    op: operators.Op, sample: FaultSample, inputs: Inputs, change: Change, start: float
) -> float | None:
    """Return the parameter that comes closest to the version's output; None if none comes close."""

    def residual(amount: float) -> torch.Tensor:
        outputs = evaluate_change(op, inputs, change, amount)
        parts = [(o - g).flatten() for o, g in zip(outputs, sample.got, strict=True)]
        return torch.cat(parts)

    if not all(bool(g.isfinite().all()) for g in sample.got):
        return None
    amount, here = start, residual(start)
    for _ in range(_ROUNDS):
        step = max(1e-4 * abs(amount), 1e-7)
        slope = (residual(amount + step) - here) / step
        size = float(slope @ slope)
        if not math.isfinite(size) or size == 0:
            return None
        move = -float(slope @ here) / size
        following = residual(amount + move)
        if not float(following.norm()) < 0.9 * float(here.norm()):
            break
        amount, here = amount + move, following
    moved = abs(amount - start) > LEAST_MOVE * max(abs(start), 1e-6)
    return amount if moved else None
