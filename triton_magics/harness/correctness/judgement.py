"""Judge an output: compare it with the expected values and their allowed errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

PIECE_ELEMENTS = 2**22  # elements that are converted to float64 at once


@dataclass(frozen=True)
class Judgement:
    """Errors of an output: the largest share of the allowed error, and the wrong elements."""

    error_share: float
    max_abs_error: float
    wrong: torch.Tensor | None

    @property
    def is_correct(self) -> bool:
        """Return whether every element is within its allowed error."""
        return self.wrong is None


def judge(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> Judgement:
    """Compare an output of any dtype with the oracle; integers and bools are compared exactly.

    NaN and signed infinities must be exactly where the oracle has them; a value that overflows the
    output's dtype, or would with its allowed error, may be infinite.
    """
    if got.numel() == 0:
        return Judgement(0.0, 0.0, None)
    if got.numel() <= PIECE_ELEMENTS:
        return _judge(got, value, allowed)
    flat = (got.reshape(-1), value.reshape(-1), allowed.expand_as(value).reshape(-1))
    pieces = zip(*(t.split(PIECE_ELEMENTS) for t in flat), strict=True)
    judged = [_judge(*piece) for piece in pieces]
    wrong = None
    if any(not j.is_correct for j in judged):
        sizes = [len(p) for p in flat[0].split(PIECE_ELEMENTS)]
        none = [torch.zeros(n, dtype=torch.bool, device=got.device) for n in sizes]
        masks = [n if j.wrong is None else j.wrong for n, j in zip(none, judged, strict=True)]
        wrong = torch.cat(masks).reshape(got.shape)
    return Judgement(
        max(j.error_share for j in judged), max(j.max_abs_error for j in judged), wrong
    )


def is_correct(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> bool:
    """Return whether `judge` accepts the output."""
    if 0 < got.numel() <= PIECE_ELEMENTS:
        share, error = _finite_errors(got, value, allowed)
        if math.isfinite(share) and math.isfinite(error):
            return share <= 1.0
    return judge(got, value, allowed).is_correct


def _finite_errors(
    got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor
) -> tuple[float, float]:
    """Return the largest share of the allowed error, and the largest error, in one transfer.

    NaN or infinite if an element is nonfinite, or if both its error and its allowed error are 0.
    """
    error = (got.double() - value.double()).abs_()
    largest = error.amax()
    share, worst = torch.stack((error.div_(allowed).amax(), largest)).tolist()
    return share, worst


def _judge(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> Judgement:
    """Judge an output of moderate size in one piece."""
    share_of_all, largest_error = _finite_errors(got, value, allowed)
    if share_of_all <= 1.0 and math.isfinite(largest_error):
        return Judgement(share_of_all, largest_error, None)
    same = _is_same(got, value, allowed)
    error = torch.where(same, 0.0, (got.double() - value.double()).abs())
    share = torch.where(same, 0.0, error / allowed)
    wrong = ~(share <= 1.0)
    finite_error = float(finite_part(error).amax())
    if not bool(wrong.any()):
        return Judgement(float(share.amax()), finite_error, None)
    worst = float(share.amax())
    return Judgement(float("inf") if math.isnan(worst) else worst, finite_error, wrong)


def _is_same(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Return where an output is what it should be, with NaN, infinities and overflow."""
    if not got.dtype.is_floating_point:
        return got == value
    have, largest = got.double(), torch.finfo(got.dtype).max
    near = (value.abs() >= 0.999 * largest) | (value.abs() + allowed >= largest)
    overflows = have.isinf() & near & (have.sign() == value.sign())
    return (have == value) | (have.isnan() & value.isnan()) | overflows


def is_within(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> bool:
    """Return whether every element is within its allowed error; NaN and infinity are not."""
    if not got.dtype.is_floating_point:
        return bool((got == value).all())
    flat = (got.reshape(-1), value.reshape(-1), allowed.expand_as(value).reshape(-1))
    pieces = zip(*(t.split(4 * PIECE_ELEMENTS) for t in flat), strict=True)
    return bool(torch.stack([((g.double() - v).abs_() <= a).all() for g, v, a in pieces]).all())


def finite_part(x: torch.Tensor) -> torch.Tensor:
    """Return the elements with NaN and infinities replaced by 0."""
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
