"""Cases beside the design of a plan: small ones, each with what is not combined with all else.

A covering array with them would have many more rows. `value_cases` and `layout_cases` have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import make_meta, make_pristine
from triton_magics.harness.correctness.shape_classes import Shape
from triton_magics.harness.correctness.shape_variants import informative_scalars, is_defined
from triton_magics.model import BESIDE, Case

FOUR_DIMENSIONS = (2, 3, 2, 33)
MANY_DIMENSIONS = 4  # as attention has
_CPU = torch.device("cpu")


class CasesBeside:
    """The cases of an op beside its design."""

    def __init__(
        self,
        op: operators.Op,
        dtypes: Sequence[str],
        seed: int,
        shapes: Mapping[str, Shape],
        values: Sequence[str],
        *,
        is_interpreted: bool,
    ) -> None:
        """Take what the design has.

        Args:
            op, dtypes, seed: of the plan.
            shapes: a cheap one of each class.
            values: the special values that mean something for the op.
            is_interpreted: an interpreter runs the kernels, some milliseconds for each program.
        """
        self._op, self._dtypes, self._seed = op, dtypes, seed
        self._shapes, self._values = shapes, values
        self._is_interpreted = is_interpreted
        self._scalars = informative_scalars(op)

    def case(self, shape_class: str, turn: int, **changes: Any) -> Case:
        """Return a plain case of a small shape with changes; its scalars take turns."""
        shape = self._shapes.get(shape_class) or self._shapes.get("odd")
        shape = shape or operators.smallest_shape(self._op)
        scalars = {name: values[turn % len(values)] for name, values in self._scalars.items()}
        plain = Case(shape=shape, dtype=self._dtypes[0], shape_class=BESIDE, seed=0)
        return plain.evolve(**{"scalars": tuple(scalars.items()), **changes})

    def has_any_number_of_dimensions(self) -> bool:
        """Return whether the op takes tensors of any number of dimensions."""
        has_several = len({len(shape) for shape in self._op.shapes}) > 1
        return has_several and is_defined(self._op, FOUR_DIMENSIONS)

    def layouts_at(self, shape: Shape) -> dict[str, tuple[str, ...]]:
        """Return the layouts that each tensor can have at a shape, by name."""
        inputs = make_meta(self._op, self.case("", 0, shape=shape))
        return {
            name: layouts.available(tuple(x.shape), is_mutated=i in self._op.mutates)
            for i, (name, x) in enumerate(
                zip(self._op.input_names(len(inputs)), inputs, strict=True)
            )
            if isinstance(x, torch.Tensor)
        }

    def inputs_of(self, case: Case) -> dict[str, Any]:
        """Return the inputs of a case by name."""
        inputs = make_pristine(self._op, case, _CPU)
        return dict(zip(self._op.input_names(len(inputs)), inputs, strict=True))
