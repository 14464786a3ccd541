"""Checks of an op's reference and inputs, before they judge a version.

The oracle calls the reference many times, in other dtypes and on copies of the inputs. That is
sound only if it computes the same from the same inputs and leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal, make_pristine
from triton_magics.harness.correctness.oracle import evaluate
from triton_magics.harness.correctness.shape_classes import representatives
from triton_magics.harness.load import UserFault
from triton_magics.model import Case

_OTHER_SEED = 0x5EED


@contextmanager
def _same_state() -> Iterator[None]:
    yield


@contextmanager
def _other_default_dtype() -> Iterator[None]:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16 if default != torch.float16 else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def _other_random_state() -> Iterator[None]:
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(_OTHER_SEED)
        yield


State = Callable[[], AbstractContextManager[None]]
STATES: Mapping[str, State] = MappingProxyType(
    {
        "returned different outputs for the same inputs": _same_state,
        "depends on torch's global random generator": _other_random_state,
    }
)


def check_reference(op: operators.Op, device: torch.device) -> None:
    """Check that reference and inputs depend on nothing else, and that the inputs stay.

    The output of an op with a `check` is random, so it is not compared.

    Raises:
        UserFault: `make_inputs` or the reference depends on torch's random generator or differs
            from call to call; the reference depends on the default dtype or changes its inputs.
    """
    shapes = representatives(op)
    case = Case(shape=shapes.get("odd", operators.smallest_shape(op)), dtype=op.dtypes[0], seed=1)
    inputs = make_pristine(op, case, device)
    _check_same(
        op, inputs, lambda: make_pristine(op, case, device), "make_inputs",
        "make every random number with its generator",
    )  # fmt: skip
    _check_inputs_stay(op, inputs)
    if op.check is None:
        _check_same(
            op, evaluate(op, inputs)[1], lambda: evaluate(op, inputs)[1], "the reference",
            "compute from its inputs alone; define check(inputs, output) if its output is random",
            states={**STATES, "depends on torch's default dtype": _other_default_dtype},
        )  # fmt: skip


def _check_inputs_stay(op: operators.Op, inputs: tuple[Any, ...]) -> None:
    """Check that the reference changes no input beside those in MUTATES."""
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    evaluate(op, inputs)
    for i, (x, original) in enumerate(zip(inputs, before, strict=True)):
        if isinstance(x, torch.Tensor) and not is_bitwise_equal(x, original):
            raise UserFault(
                f"{op.name}: the reference changes its input {i}, and the op does not say so; "
                f"compute out of place, or declare MUTATES = ({i},)"
            )


def _check_same(
    op: operators.Op,
    first: tuple[Any, ...],
    compute: Callable[[], tuple[Any, ...]],
    culprit: str,
    advice: str,
    *,
    states: Mapping[str, State] = STATES,
) -> None:
    """Check that further calls give the same, also in other states of torch."""
    for finding, state in states.items():
        with state():
            again = compute()
        if not all(map(_is_same, first, again)):
            raise UserFault(f"{op.name}: {culprit} {finding}; {advice}")


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return is_bitwise_equal(one, other)
    return bool(one == other)
