"""A wrong output of a version with the facts that an explanation is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from triton_magics.harness.correctness.place_changes import Memory
from triton_magics.harness.correctness.reference_changes import Inputs
from triton_magics.model import Case

_UNIT = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@dataclass(frozen=True)
class FaultSample:
    """A version's wrong output on a case, all tensors on the CPU.

    Attributes:
        inputs: of the reference, in float64.
        got: the version's outputs in float64.
        expected: the oracle.
        allowed: errors.
        memory: of the inputs that are tensors.
        n_wrong: wrong elements.
        largest: number of the output's dtype.
    """

    case: Case
    inputs: Inputs
    got: tuple[torch.Tensor, ...]
    expected: tuple[torch.Tensor, ...]
    allowed: tuple[torch.Tensor, ...]
    memory: tuple[Memory | None, ...]
    n_wrong: int
    largest: float

    @property
    def unit(self) -> float:
        """Return the relative rounding of the dtype."""
        return _UNIT.get(self.case.dtype, 2e-6)

    @property
    def rows(self) -> int:
        """Return the number of rows of the output."""
        got = self.got[0]
        return got.numel() // max(got.shape[-1], 1) if got.dim() else 1

    @property
    def is_constant(self) -> bool:
        """Return whether it is one number: too many changes give it as well."""
        got = self.got[0].flatten()
        finite = got[got.isfinite()]
        if got.numel() == 1:
            return not len(finite) or bool((got == 0).all())
        return not len(finite) or bool((finite == finite[0]).all())

    @property
    def overflows(self) -> bool:
        """Return whether the version gives NaN or infinity where a number is expected."""
        pairs = zip(self.got, self.expected, strict=True)
        return any(bool((~g.isfinite() & e.isfinite()).any()) for g, e in pairs)
