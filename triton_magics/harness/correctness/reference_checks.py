"""Checks of an op's reference and inputs, before they judge a version.

The oracle calls the reference many times, in other dtypes and on copies of the inputs. That is
sound only if it computes the same from the same inputs and leaves them as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from triton_magics import exception_text, operators
from triton_magics.harness.correctness.case_inputs import is_bitwise_equal, make_pristine
from triton_magics.harness.correctness.oracle import evaluate, upcast
from triton_magics.harness.correctness.shape_classes import representatives
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault
from triton_magics.model import Case

_OTHER_SEED = 0x5EED
_FINE, _COARSE = 1e-9, 1e-3  # relative changes: below and above the precision of float32
_MOST_INPUTS = 4  # that are changed, one at a time
_MAX_ELEMENTS = 2**20  # of a shape at which a reference is checked


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


# ----------------------------------------------------------------------------------- float64


def check_float64(op: operators.Op, device: torch.device) -> None:
    """Check that the reference computes in float64, as the oracle needs.

    It does if its output follows a change of each input that float32 can't represent. An input
    that the output does not follow through a larger change either says nothing: a softmax of one
    element is 1. Of an output that has steps, such as a rounded one, the operations decide.

    Raises:
        UserFault: it raises, or rounds an input to float32.
    """
    for shape in _small_shapes(op):
        case = Case(shape=shape, dtype=op.dtypes[0], seed=1)
        inputs = upcast(make_pristine(op, case, device))
        exact = _evaluate_in_float64(op, inputs)
        if op.check or not any(map(is_floating, inputs)) or not any(map(is_floating, exact)):
            return
        places = [i for i, x in enumerate(inputs) if is_floating(x)][:_MOST_INPUTS]
        rounded = [i for i in places if not _is_moved(op, _change(inputs, _FINE, i), rounded=True)]
        if any(_is_moved(op, _change(inputs, _COARSE, i)) for i in rounded):
            _check_casts(op, inputs)
            return
        if len(rounded) < len(places):
            return


def _small_shapes(op: operators.Op) -> list[tuple[int, ...]]:
    shapes = {*op.shapes, *representatives(op).values(), operators.smallest_shape(op)}
    small = sorted(shapes, key=math.prod)
    return [s for s in small if math.prod(s) <= _MAX_ELEMENTS] or small[:1]


def _evaluate_in_float64(op: operators.Op, inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    try:
        return evaluate(op, inputs)[1]
    except UserFault as error:
        cause = error.__cause__ or error
        raise UserFault(
            f"{op.name}: the reference must also work in float64, where the expected output is "
            f"computed; it raised {exception_text.one_line(cause)}"
        ) from error


def _change(
    inputs: tuple[Any, ...], by: float, place: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the inputs, and inputs of which one differs by a random share of its values."""
    draw = torch.Generator().manual_seed(_OTHER_SEED)

    x = inputs[place]
    noise = torch.rand(x.shape, dtype=torch.float64, generator=draw).to(x.device)
    changed = x * (1 + by * (0.5 + noise))
    return inputs, (*inputs[:place], changed, *inputs[place + 1 :])


def _is_moved(
    op: operators.Op, pair: tuple[tuple[Any, ...], tuple[Any, ...]], *, rounded: bool = False
) -> bool:
    """Return whether an output differs between two inputs.

    Args:
        op: the op.
        pair: the inputs.
        rounded: compare the second of them with itself rounded to float32.
    """
    one, other = pair
    if rounded:
        one = tuple(x.float().double() if is_floating(x) else x for x in other)
    pairs = zip(evaluate(op, one)[1], evaluate(op, other)[1], strict=True)
    return not all(torch.equal(a, b) for a, b in pairs)


class _FindCast(TorchDispatchMode):
    """Notice an operation that makes a float32 tensor from a float64 one."""

    has_cast = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        from_double = any(isinstance(x, torch.Tensor) and x.dtype is torch.float64 for x in args)
        self.has_cast |= from_double and getattr(output, "dtype", None) is torch.float32
        return output


def _check_casts(op: operators.Op, inputs: tuple[Any, ...]) -> None:
    with _FindCast() as casts:
        evaluate(op, inputs)
    if casts.has_cast:
        raise UserFault(
            f"{op.name}: the reference computes in float32 even where its inputs are float64, so "
            "it can't be the oracle; write x.to(torch.promote_types(x.dtype, torch.float32)) "
            "instead of x.float()"
        )
