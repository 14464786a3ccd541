"""References with one operation changed, by the text of the change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness.operation_changes import changes_of
from triton_magics.harness.correctness.reference_trace import evaluate_changed, trace_reference
from triton_magics.model import CauseCode

Reference = Callable[..., torch.Tensor]


def own_op(reference: Reference) -> operators.Op:
    """Return an op that computes a function of any inputs."""
    return dataclasses.replace(operators.load("relu"), reference=reference, exact=None)


def normal(*shape: int, seed: int = 1) -> torch.Tensor:
    """Return normal numbers, float64."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


def changed_outputs(
    reference: Reference, *inputs: Any, amount: float = 0.0
) -> dict[str, tuple[CauseCode, torch.Tensor]]:
    """Return by text the code and the output of each change that can be evaluated."""
    op = own_op(reference)
    outputs: dict[str, tuple[CauseCode, torch.Tensor]] = {}
    for change in changes_of(trace_reference(op, inputs)):
        try:
            (output,) = evaluate_changed(op, inputs, change.at, change.operation(amount))
        except (RuntimeError, TypeError, ValueError, IndexError):
            continue
        outputs.setdefault(change.text, (change.code, output))
    return outputs


def assert_changed(
    outputs: dict[str, tuple[CauseCode, torch.Tensor]],
    text: str,
    code: CauseCode,
    expected: torch.Tensor,
) -> None:
    """Assert that a change with this text and code gives an output."""
    assert text in outputs, "\n".join(outputs)
    actual_code, output = outputs[text]
    assert actual_code is code
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-12, equal_nan=True)
