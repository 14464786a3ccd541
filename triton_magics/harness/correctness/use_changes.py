"""Faults of one use of a value as changes of the reference: a kernel may load it for each use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from triton_magics.harness.correctness.input_changes import other_places
from triton_magics.harness.correctness.reference_changes import Change, Inputs, describe
from triton_magics.harness.correctness.reference_trace import TracedOperation
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode


def changes_of_input_uses(
    operations: Sequence[TracedOperation], inputs: Inputs, names: Sequence[str]
) -> Iterator[Change]:
    """Yield the changes of an input in one of the operations that take it, if there are several.

    Args:
        operations: of the reference.
        inputs: of the reference.
        names: of the inputs.
    """
    uses = Counter(i for o in operations for i in o.positions if i is not None)
    for at, operation in enumerate(operations):
        for k, i in enumerate(operation.positions[:2]):
            if i is None or uses[i] < 2 or not is_floating(inputs[i]):
                continue
            where = f", as operand {k + 1} of {describe(operation)}"
            for code, text, change in other_places(names[i], inputs[i]):
                yield Change(code, text + where, at, partial(_with_changed, k, change))
            for other in (j for j, x in enumerate(inputs) if j != i and _is_alike(x, inputs[i])):
                text = f"{names[other]} is read in place of {names[i]}{where}"
                change = partial(_take_other, inputs[other])
                yield Change(CauseCode.WRONG_FORMULA, text, at, partial(_with_changed, k, change))


def _is_alike(x: object, like: torch.Tensor) -> bool:
    return isinstance(x, torch.Tensor) and is_floating(x) and x.shape == like.shape


def _take_other(other: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return other.to(x.dtype)


def _with_changed(
    k: int, change: Callable[[torch.Tensor], torch.Tensor], o: TracedOperation, _: float
) -> torch.Tensor:
    return o.call(*o.args[:k], change(o.args[k]), *o.args[k + 1 :])


__all__ = ["changes_of_input_uses"]
