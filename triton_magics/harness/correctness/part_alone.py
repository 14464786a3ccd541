"""A cause that shows where a part of the inputs, such as a row, is computed alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.case_hypotheses import with_plain_values
from triton_magics.harness.correctness.further_calls import passes
from triton_magics.harness.correctness.hypotheses import Hypothesis, Trial, fresh
from triton_magics.harness.correctness.row_chunks import Chunk
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, CaseResult, Cause, CauseCode

CARRIED = (
    "right where this row, head or batch is alone, or all have usual values: what others hold "
    "reaches it, as where a program carries a value from one to the next"
)


@dataclass(frozen=True)
class PartAlone:
    """A call on one part of a case's inputs, along the dimensions of the op's `INDEPENDENT`.

    Attributes:
        case: of the inputs.
        dim: of the shape, and of the outputs.
        place: of the part.
    """

    case: Case
    dim: int
    place: int

    def is_right(self, subject: Subject) -> bool:
        """Return whether the version is right on the part; not if it raises, or there is none."""
        shape = [1 if i == self.dim else n for i, n in enumerate(self.case.shape)]
        small = self.case.evolve(shape=tuple(shape), size=None, extent="", layouts=())
        whole = subject.make_inputs(self.case).pristine
        values = Chunk(self.dim, self.place, 1).slice_inputs(subject.op, whole)
        try:
            like = subject.make_inputs(small).pristine
            pairs = zip(like, values, strict=True)
            if any(isinstance(x, torch.Tensor) and x.shape != y.shape for x, y in pairs):
                return False
            return passes(subject, small, values)
        except (VersionRaised, UserFault):
            return False


def of_others(subject: Subject, case: Case, result: CaseResult) -> Iterator[Hypothesis]:
    """Yield a value that is carried, where a part is wrong only beside parts of other values."""
    assert result.mismatch is not None
    index, op = result.mismatch.index, subject.op
    dims = [d for d in op.independent if d is not None and d < min(len(case.shape), len(index))]
    if not dims or case.has_plain_values or case.shape[dims[0]] < 2:
        return
    if op.op_class == "elementwise":  # a block of one has parts of several rows
        return
    alone = PartAlone(case, dims[0], index[dims[0]])
    yield Hypothesis(
        Cause(code=CauseCode.REACH, evidence=CARRIED),
        right=(alone, Trial(with_plain_values(case))),
        wrong=(Trial(fresh(case)),),
    )


__all__ = ["CARRIED", "PartAlone", "of_others"]
