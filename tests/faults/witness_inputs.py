"""Build the inputs of a witness from plain data, without the plan of a validation.

A witness names a shape, a dtype, a seed, a layout for each tensor, edits of values, and scalars.
Nothing here comes from the harness, so that a change of its cases changes no witness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from triton_magics import operators

Witness = Mapping[str, Any]
FAR_STRIDE = 2**30


def _buffer(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    return torch.zeros(tuple(shape), dtype=x.dtype, device=x.device)


def _swap(x: torch.Tensor, one: int, other: int) -> torch.Tensor:
    return x.transpose(one, other).contiguous().transpose(one, other)


def _swap_last(x: torch.Tensor) -> torch.Tensor:
    return _swap(x, -1, -2) if x.dim() > 1 else _every_second(x)


def _swap_outer(x: torch.Tensor) -> torch.Tensor:
    """Store [batch, heads, seq, dim] as [batch, seq, heads, dim], or [b, n, m] as [n, b, m]."""
    return _swap(x, -2, -3) if x.dim() > 2 else _pad_rows(x)


def _pad_rows(x: torch.Tensor) -> torch.Tensor:
    wide = _buffer(x, (*x.shape[:-1], x.shape[-1] + 3))[..., : x.shape[-1]]
    return wide.copy_(x)


def _every_second(x: torch.Tensor) -> torch.Tensor:
    wide = _buffer(x, (*x.shape[:-1], 2 * x.shape[-1]))[..., ::2]
    return wide.copy_(x)


def _expand_first(x: torch.Tensor) -> torch.Tensor:
    return x[:1].clone().expand(x.shape)


def _offset(x: torch.Tensor) -> torch.Tensor:
    return _buffer(x, (x.numel() + 1,))[1:].view(x.shape).copy_(x)


def _far_rows(x: torch.Tensor) -> torch.Tensor:
    """Rows 2**30 elements apart; memory that is not touched costs nothing on the CPU."""
    rows, cols = x.shape
    buffer = torch.empty((rows - 1) * FAR_STRIDE + cols, dtype=x.dtype, device=x.device)
    return buffer.as_strided((rows, cols), (FAR_STRIDE, 1)).copy_(x)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": _swap_last,
    "outer_swapped": _swap_outer,
    "padded": _pad_rows,
    "every_second": _every_second,
    "expanded": _expand_first,
    "offset": _offset,
    "far_rows": _far_rows,
}


def edit_values(x: torch.Tensor, edit: Witness) -> None:
    """Change a part of a tensor: `set` it, or make it `absolute`, `scale` it, `add`."""
    rows = x.view(-1, x.shape[-1])
    part = rows[slice(*edit.get("rows", (None,))), slice(*edit.get("cols", (None,)))]
    if "set" in edit:
        part.fill_(float(edit["set"]))
    if "absolute" in edit:
        part.abs_()
    if "scale" in edit:
        part.mul_(float(edit["scale"]))
    if "add" in edit:
        part.add_(float(edit["add"]))


def make_witness_inputs(
    op: operators.Op, witness: Witness, device: torch.device
) -> tuple[Any, ...]:
    """Return the arguments of a call; the tensors have their layouts.

    Args:
        op: the op.
        witness: `shape` and, where they differ from the usual, `dtype`, `seed`, `layouts` and
            `edits` (one each by the input's number as text), `scalars` (likewise). With
            `one_memory` input 1 is input 0 with its last two dimensions exchanged.
        device: of the tensors.
    """
    generator = torch.Generator(device=device).manual_seed(witness.get("seed", 1))
    dtype = getattr(torch, witness.get("dtype", "float32"))
    inputs = list(op.make_inputs(tuple(witness["shape"]), dtype, device, generator))
    for edit in witness.get("edits", ()):
        edit_values(inputs[edit.get("input", 0)], edit)
    for number, layout in witness.get("layouts", {}).items():
        inputs[int(number)] = LAYOUTS[layout](inputs[int(number)])
    if witness.get("one_memory"):
        inputs[1] = inputs[0].transpose(-1, -2)
    for number, value in witness.get("scalars", {}).items():
        inputs[int(number)] = value
    return tuple(inputs)
