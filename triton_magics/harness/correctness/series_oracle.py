"""Expected outputs of the calls of a series, and which calls have them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import to_device
from triton_magics.harness.correctness.subject import Subject
from triton_magics.model import Case


def all_to_device(
    contents: tuple[tuple[Any, ...], ...], device: torch.device
) -> tuple[tuple[Any, ...], ...]:
    """Return the contents with tensors on a device; one that several have is one there, too."""
    moved = iter(to_device([x for own in contents for x in own], device))
    return tuple(tuple(itertools.islice(moved, len(own))) for own in contents)


@dataclass(frozen=True)
class ExpectedAhead:
    """The oracle of each contents of a series, computed while the version's process calls.

    Attributes:
        torch_errors: torch's own errors are allowed: they are made where the version runs.
    """

    subject: Subject
    case: Case
    contents: tuple[tuple[Any, ...], ...]
    torch_errors: bool = True
    ready: dict[int, oracle.StagedOracle] = field(default_factory=dict)

    def prepare(self) -> None:
        """Compute it for all but the first; a failure is raised where it is needed."""
        if self.subject.op.check is None:
            with suppress(Exception):
                for content in range(1, len(self.contents)):
                    self.ready[content] = self._begin(content)

    def iter_expected(self, content: int) -> Iterator[oracle.ExpectedOutputs]:
        """Yield the oracle with a wider and wider tolerance."""
        expected = self.ready.pop(content, None) or self._begin(content)
        return expected.stages(lambda: self.subject.conditioning(self.case))

    def _begin(self, content: int) -> oracle.StagedOracle:
        job = self.subject.job
        return oracle.begin_expected(
            self.subject.op, self.contents[content], self.case, job.rtol, job.atol,
            torch_errors=self.torch_errors,
        )  # fmt: skip


def equal_rows(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return for each call whether its output has these bits; `b` may be one output for all."""
    if a.dtype.is_floating_point:
        word = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
        a, b = a.contiguous().view(word), b.contiguous().view(word)
    return (a == b).flatten(1).all(1) if a.dim() > 1 else a == b


def right_rows(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Return for each call whether its output, finite or not, is within the allowed error."""
    got = got.reshape(len(got), *value.shape)
    if not got.dtype.is_floating_point:
        return equal_rows(got, value[None])
    have, want = got.double(), value[None]
    error = (have - want).abs()
    same = (have == want) | (have.isnan() & want.isnan())
    right = same | (error <= allowed.expand_as(value)[None])
    return right.flatten(1).all(1) if right.dim() > 1 else right
