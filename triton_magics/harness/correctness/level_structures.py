"""Rows whose parts lie at levels: about a number of the source below the largest, or at -infinity.

A kernel for weights, such as those of a softmax, goes through a row part by part. It may leave out
what is far below the largest so far, rescale its sum only for a large step up, or store a number of
its own for a part that is all -infinity. Each is right up to a distance that stands in its source.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness.call_record import all_outputs
from triton_magics.harness.correctness.tolerance import is_floating

# Of the number: just under it, just over it, about it. A kernel with exp2 has it in powers of two.
_DISTANCES = ((0.94, 1.0), (1.0, 1.06), (0.8, 1.2))
_BASES = (1.0, 1.0, math.log(2.0))
_SHARES_BELOW = (0.5, 0.9)  # of the parts of a row
_SHARES_LEFT_OUT = (0.0, 0.25, 0.25)
_OFFSETS = (0.0, -200.0)  # of a whole row: its largest element may be far below zero
_JITTER = 0.02
_SHORTEST_PART = 16
_HEAD_DIMENSIONS = 4
_MOST_TRIED = 8
_NEAR_START = 64
_LEAST, _FURTHER = -300.0, -600.0  # both weigh nothing beside numbers near zero


def levels_of_rows(
    number: float, x: torch.Tensor, draw: torch.Generator, *, is_finite: bool
) -> torch.Tensor:
    """Return rows of parts at two levels; unless they are finite, most have parts of -infinity.

    A part is a power of two of elements. In half of the rows a single element is the upper level,
    and in a quarter the first half of a row is the lower one.
    """
    rows = x.reshape(-1, x.shape[-1]).double()
    n_rows, n = rows.shape
    part = torch.arange(n, device=x.device)[None] // _lengths_of_parts(n_rows, n, draw, x.device)
    is_below = _choose_below(part, draw)
    lane = torch.randint(n, (n_rows, 1), device=x.device, generator=draw)
    lane[::2] //= _NEAR_START  # what is left out behind it shows most
    is_alone = torch.rand((n_rows, 1), device=x.device, generator=draw) < 0.5
    is_below = torch.where(is_alone, torch.arange(n, device=x.device)[None] != lane, is_below)
    level = -_distances(number, n_rows, draw, x.device) * is_below
    values = level + _one_of(_OFFSETS, n_rows, draw, x.device) + _JITTER * rows
    if not is_finite:
        share = _one_of(_SHARES_LEFT_OUT, n_rows, draw, x.device)
        values = values.masked_fill(_flip(part, share, draw) & ~is_alone, -math.inf)
    return values.to(x.dtype).reshape(x.shape)


def rows_about_one(x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return rows of nearly equal numbers about 1, the distances of `levels_of_rows` for number 1.

    A row that is multiplied by levels has them at its own distance.
    """
    rows = x.reshape(-1, x.shape[-1]).double()
    values = _distances(1.0, len(rows), draw, x.device) + _JITTER * rows
    return values.to(x.dtype).reshape(x.shape)


def levels_of_products(number: float, x: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return matrices of rows at two levels, 0 and the negative number, if multiplied by ones.

    Scores of attention are divided by the root of the columns, logits of a loss are not.
    """
    n, columns = x.shape[-2:]
    matrices = x.reshape(-1, n, columns).double()
    n_matrices = len(matrices)
    lengths = _lengths_of_parts(n_matrices, n, draw, x.device)
    part = torch.arange(n, device=x.device)[None] // lengths
    is_below = _choose_below(part, draw)
    level = -number * is_below[..., None].double()
    size = columns**0.5 if x.dim() >= _HEAD_DIMENSIONS else columns
    values = level / size + _JITTER * matrices / columns**0.5
    return values.to(x.dtype).reshape(x.shape)


def _lengths_of_parts(
    n_rows: int, n: int, draw: torch.Generator, device: torch.device
) -> torch.Tensor:
    """Return a power of two for each row, [rows, 1]: 16 to half a row, mostly long ones."""
    least, most = _SHORTEST_PART.bit_length() - 1, max((n // 2).bit_length() - 1, 0)
    least = min(least, most)
    short, long = (
        torch.randint(start, most + 1, (n_rows, 1), device=device, generator=draw)
        for start in (least, max(most - 2, least))
    )
    return 1 << torch.where(_one_of((0.0, 1.0), n_rows, draw, device) > 0, long, short)


def _flip(part: torch.Tensor, share: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return for each element whether its part is chosen: that share of a row's, but never all."""
    n_parts = int(part.max()) + 1 if part.numel() else 1
    chance = torch.rand((len(part), n_parts), device=part.device, generator=draw)
    own = chance.gather(1, part)
    return (own < share) & (own < own.amax(1, keepdim=True))


def _choose_below(part: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """Return which elements are at the lower level: random parts, or the first half of a row."""
    n_rows, n = part.shape
    random = _flip(part, _one_of(_SHARES_BELOW, n_rows, draw, part.device), draw)
    is_first = torch.arange(n, device=part.device) < (n + 1) // 2
    return torch.where(_one_of((0.0, 1.0), n_rows, draw, part.device) > 0, is_first, random)


def _one_of(
    values: tuple[float, ...], n_rows: int, draw: torch.Generator, device: torch.device
) -> torch.Tensor:
    """Return one of the values for each row, [rows, 1]."""
    which = torch.randint(len(values), (n_rows, 1), device=device, generator=draw)
    return torch.tensor(values, dtype=torch.float64, device=device)[which]


def _distances(
    number: float, n_rows: int, draw: torch.Generator, device: torch.device
) -> torch.Tensor:
    """Return for each row a distance about the number, [rows, 1]."""
    share = torch.rand((n_rows, 1), device=device, generator=draw).double()
    least, most = torch.tensor(_DISTANCES, dtype=torch.float64, device=device).T
    which = torch.randint(len(_DISTANCES), (n_rows, 1), device=device, generator=draw)
    factor = least[which] + (most - least)[which] * share
    return number * factor * _one_of(_BASES, n_rows, draw, device)


def weighs_by_exp(op: operators.Op) -> bool:
    """Return whether what is far below the rest weighs nothing in an op, as in a softmax.

    It is tried on a few elements: an element of each row is moved, or of a product each row of the
    second factor.
    """
    dim = -2 if op.op_class == "matmul" else -1
    if op.check is not None or op.op_class not in {"matmul", "reduction"}:
        return False
    for shape in sorted(op.shapes, key=math.prod):
        try:
            draw = torch.Generator().manual_seed(1)
            inputs = op.make_inputs(shape, torch.float32, torch.device("cpu"), draw)
            n = inputs[_moved(op)].shape[dim]
            if n > 1:
                return any(_is_ignored(op, inputs, i) for i in range(min(n, _MOST_TRIED)))
        except Exception:  # noqa: BLE001 (the op's own code)
            return False
    return False


def _moved(op: operators.Op) -> int:
    """Return the place of the input that is moved."""
    return int(op.op_class == "matmul")


def _is_ignored(op: operators.Op, inputs: tuple[Any, ...], i: int) -> bool:
    """Return whether an op gives the same with a part at two levels far below the rest."""
    outputs = []
    for level in (_LEAST, _FURTHER):
        values = [x.double() if is_floating(x) else x for x in inputs]
        moved = values[_moved(op)]
        if op.op_class == "matmul":
            values[0] = values[0].abs() + 1
            moved[..., i, :] = level
        else:
            moved[..., i] = level
        outputs.append(all_outputs(op.reference(*values), tuple(values), op.mutates))
    return all(
        bool(a.isfinite().all()) and torch.allclose(a.double(), b.double(), rtol=1e-9, atol=1e-12)
        for a, b in zip(*outputs, strict=True)
    )
