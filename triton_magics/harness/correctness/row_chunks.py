"""Split a large case into chunks, so that its whole oracle is never in memory at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from triton_magics import operators

CHUNK_ELEMENTS = 2**21  # whose oracle is made at once, at least


@dataclass(frozen=True)
class Chunk:
    """A range of every output along one dimension; `dim` None means the whole output."""

    dim: int | None = None
    start: int = 0
    length: int = 0

    def slice_output(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return this range of an output, or of a tensor of the same shape."""
        return tensor if self.dim is None else tensor.narrow(self.dim, self.start, self.length)

    def slice_inputs(self, op: operators.Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the parts of the inputs that this range depends on, contiguous."""
        if self.dim is None:
            return inputs
        return tuple(
            x if d is None else x.narrow(d, self.start, self.length).contiguous()
            for x, d in zip(inputs, op.independent, strict=True)
        )


def split_outputs(
    op: operators.Op,
    inputs: tuple[Any, ...],
    outputs: tuple[torch.Tensor, ...],
    max_elements: int | None = None,
) -> list[Chunk]:
    """Split the outputs into chunks that are compared one at a time.

    A small case, or an op that does not declare INDEPENDENT, is one chunk.

    Args:
        op: declares the independent dimensions.
        inputs: of the case.
        outputs: of the case, or tensors of their form.
        max_elements: elements of a chunk; None: as many as the device computes at once.
    """
    along = [(x, d) for x, d in zip(inputs, op.independent, strict=False) if d is not None]
    tensors = [*outputs, *(x for x, _ in along)]
    elements = max((t.numel() for t in tensors), default=0)
    if op.scratch is not None:
        elements = max(elements, int(op.scratch(*inputs)))
    if not along or not all(_can_split(op, x, d) for x, d in along):
        return [Chunk()]
    if elements <= (max_elements or CHUNK_ELEMENTS):
        return [Chunk()]
    limit = max_elements or _limit(outputs)  # it asks the driver, which takes a while
    if elements <= limit:
        return [Chunk()]
    first, dim = along[0]
    n = first.shape[dim]
    length = max(1, limit * n // elements)
    return [Chunk(dim, start, min(length, n - start)) for start in range(0, n, length)]


def _limit(outputs: tuple[torch.Tensor, ...]) -> int:
    return max(
        [CHUNK_ELEMENTS, *(operators.elements_at_once(x.device) for x in outputs if x.is_cuda)]
    )


def _can_split(op: operators.Op, x: torch.Tensor, dim: int) -> bool:
    """Return whether `dim` is not reduced; reductions and products reduce the last dimension."""
    return x.dim() > dim + (op.op_class != "elementwise")
