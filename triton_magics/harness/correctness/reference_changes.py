"""Faults of a kernel as changes of the reference: of one operation, of one input, of the output.

Each change is a guess. `matched_fault` keeps those that give the version's own output.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics.harness.correctness.reference_trace import Apply, TracedOperation
from triton_magics.model import CauseCode

HALF_TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Change:
    """A change of the reference.

    Attributes:
        code: the cause that it stands for.
        text: completes "the output is that of the reference if …".
        at: the index of the changed operation.
        apply: returns the result of this operation, given the parameter.
        inputs: returns the inputs of the reference, given the parameter.
        outputs: returns the outputs.
        start: of a parameter that is fitted; None without one.
        n_read: numbers that were read from the version's output.
        bits: of evidence beside the values.
        is_simple: an operation or an argument as a whole; where several changes give the same
            outputs, it is the likely one.
        overflows: in float32 on large inputs.
    """

    code: CauseCode
    text: str
    at: int | None = None
    apply: Callable[[TracedOperation, float], torch.Tensor] | None = None
    inputs: Callable[[Inputs, float], Inputs] | None = None
    outputs: Callable[[torch.Tensor], torch.Tensor] | None = None
    start: float | None = None
    n_read: int = 0
    bits: float = 0.0
    is_simple: bool = False
    overflows: bool = False

    @property
    def key(self) -> str:
        """Return what the change is for inputs of any shape and value."""
        return re.sub(r"(?<!` number )(?<!operand )\b\d[\d.]*", "#", self.text)

    def operation(self, amount: float) -> Apply | None:
        """Return how the operation at `at` is computed."""
        apply = self.apply
        return None if apply is None else lambda operation: apply(operation, amount)


def bind(function: Callable[..., Any], *values: Any) -> Callable[..., Any]:
    """Return a function with its last arguments set."""
    return lambda *args: function(*args, *values)


def replace_input(i: int, make: Callable[[Any, float], Any]) -> Callable[[Inputs, float], Inputs]:
    """Return the inputs with one of them replaced."""
    return lambda inputs, c: (*inputs[:i], make(inputs[i], c), *inputs[i + 1 :])


def describe(operation: TracedOperation) -> str:
    """Return a label such as `` `sub` number 2 ``."""
    number = f" number {operation.number}" if operation.number else ""
    return f"`{operation.name}`{number}"


Simple = tuple[CauseCode, str, Apply]
"""A change of an operation without a parameter: code, text, its new result."""


def subtracts_maximum(o: TracedOperation) -> bool:
    """Return whether an operation subtracts a maximum that it was given."""
    source = o.sources[1] if o.name == "sub" and len(o.sources) > 1 else None
    return source is not None and source.name in ("amax", "max")


def round_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Round to ten bits after the point, as a TF32 product does."""
    bits = x.float().contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32).to(x.dtype)


def caster(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function that rounds to a dtype."""
    return lambda x: x.to(dtype).to(x.dtype)
