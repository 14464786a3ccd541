"""Structures of the factors of a product: scores far from zero, heads of two scales, a sink."""

from __future__ import annotations

import math

import torch

FAR = 8.0  # from zero: a product of eight numbers is 500 and more
PAST_FILL = 60.0  # a score of heads of 16 numbers is past -1e4 then, scaled by their root
PAST_IN_FEW = 8e3  # nine of them are past float16's range
_HEAD_SCALE = 64.0  # exp(-64 * 2) is 0 in float32
_SINK_QUERY = 2.0
# Of a sink's score over the others: float16 still holds e^-12, float32 e^-20 times a weight of 1.
_LEAD, _LEAD_OF_HALF = 20.0, 12.0


def above(size: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return numbers that are further than a size above zero."""
    return x.abs() + size


def below(size: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return the negative of such numbers."""
    return -above(size, x, draw)


def later_below(size: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return such numbers, in the second half of the rows of each matrix negative.

    Whole blocks then weigh nothing beside those before them, and may be needed all the same: as the
    logits of targets.
    """
    return torch.where(_is_later(x), below(size, x, draw), above(size, x, draw))


def first_below(size: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return such numbers, in the first half of the rows of each matrix negative.

    A causal row of the first half is then far below all that it must not read.
    """
    return -later_below(size, x, draw)


def _is_later(x: torch.Tensor) -> torch.Tensor:
    """Return [rows, 1]: whether a row is in the second half of its matrix."""
    return torch.arange(x.shape[-2], device=x.device)[:, None] >= x.shape[-2] // 2


def head_scales(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Multiply about half of the matrices by 64: scores of attention are then 64 times as large."""
    is_large = torch.rand(x.shape[:-2], device=x.device, generator=draw) < 0.5
    return torch.where(is_large[..., None, None], x * _HEAD_SCALE, x)


def sink_query(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return queries that have one score with a key of the first dimension alone."""
    out = x.clone()
    out[..., 0] = _SINK_QUERY
    return out


def sink_key(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return keys of which the first one of each matrix weighs far more than all others."""
    lead = _LEAD if x.dtype in (torch.float32, torch.float64) else _LEAD_OF_HALF
    out = x.clone()
    out[..., 0, :] = 0.0
    out[..., 0, 0] = lead * math.sqrt(x.shape[-1]) / _SINK_QUERY
    return out


def sink_value(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return values of which the first row of each matrix is 0."""
    out = x.clone()
    out[..., 0, :] = 0.0
    return out
