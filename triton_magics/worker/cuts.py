"""The parts in which a large case is judged, so that its oracle is never held at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from triton_magics import ops

PART = 2**21  # elements whose oracle is made at once, where the op says how it may be cut


@dataclass(frozen=True)
class Cut:
    """A range of every output along one dimension; `dim` None: all of it."""

    dim: int | None = None
    start: int = 0
    length: int = 0

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """That range of an output, or of a tensor of its form."""
        return tensor if self.dim is None else tensor.narrow(self.dim, self.start, self.length)

    def of_inputs(self, op: ops.Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """What of the inputs that range depends on; contiguous."""
        if self.dim is None:
            return inputs
        return tuple(
            x if d is None else x.narrow(d, self.start, self.length).contiguous()
            for x, d in zip(inputs, op.independent, strict=True)
        )


def cuts_of(
    op: ops.Op, inputs: tuple[Any, ...], outputs: tuple[torch.Tensor, ...], part: int | None = None
) -> list[Cut]:
    """The ranges that together are all of the outputs, each to be judged by itself.

    One where the case is small, or where the op does not say how it may be cut.

    Args:
        op: says how.
        inputs: of the case.
        outputs: of the case, or tensors of their form.
        part: elements that a part may have; `PART` if not given.
    """
    part = part or PART
    along = [(x, d) for x, d in zip(inputs, op.independent, strict=False) if d is not None]
    tensors = [*outputs, *(x for x, _ in along)]
    elements = max((t.numel() for t in tensors), default=0)
    if op.scratch is not None:
        elements = max(elements, int(op.scratch(*inputs)))
    if not along or elements <= part or not all(_may_be_cut(op, x, d) for x, d in along):
        return [Cut()]
    first, dim = along[0]
    n = first.shape[dim]
    length = max(1, part * n // elements)
    return [Cut(dim, start, min(length, n - start)) for start in range(0, n, length)]


def _may_be_cut(op: ops.Op, x: torch.Tensor, dim: int) -> bool:
    """The last dimension of a reduction or a product is the one that is reduced."""
    return x.dim() > dim + (op.op_class != "elementwise")
