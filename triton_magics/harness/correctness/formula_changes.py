"""Faults of a formula as changes of the reference: another operator, operand, sign or order.

Whoever writes a kernel from a formula mistakes one step of it. A step has an operator, operands and
a place among the others, so each of these is changed, whatever the formula is.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from triton_magics.harness.correctness.reference_changes import Simple, bind, describe
from triton_magics.harness.correctness.reference_trace import TracedOperation
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode

_FORMULA = CauseCode.WRONG_FORMULA
Binary = Callable[[Any, Any], Any]
_BINARY: dict[str, Binary] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
}  # fmt: skip


def changes_of_formula(o: TracedOperation, earlier: Sequence[TracedOperation]) -> Iterator[Simple]:
    """Yield the changes of one operation of a formula.

    Args:
        o: the operation.
        earlier: those before it, in order.
    """
    if not is_floating(o.result):
        return
    yield from _other_operators(o)
    yield from _without_square(o)
    yield from _in_other_order(o)
    yield from _cross_terms(o)
    yield from _other_constants(o)
    yield from _other_signs(o)
    yield from _magnitudes(o)
    yield from _missing_operands(o)
    yield from _by_row(o)
    yield from _other_operands(o, earlier)


def is_binary(o: TracedOperation) -> bool:
    """Return whether it adds, subtracts, multiplies or divides two operands."""
    return o.name in _BINARY and len(o.args) == 2


def _other_operators(o: TracedOperation) -> Iterator[Simple]:
    if not is_binary(o):
        return
    for name, other in _BINARY.items():
        if name != o.name:
            text = f"{describe(o)} is `{name}`"
            yield _FORMULA, text, bind(lambda op, other: other(*op.args), other)


def _without_square(o: TracedOperation) -> Iterator[Simple]:
    """Yield a square as the magnitude of its argument."""
    is_power = o.name == "pow" and len(o.args) == 2 and o.args[1] == 2
    if is_power or (o.name == "mul" and o.args[0] is o.args[1]):
        text = f"{describe(o)} is the magnitude, not the square"
        yield _FORMULA, text, lambda op: op.args[0].abs()


def _in_other_order(o: TracedOperation) -> Iterator[Simple]:
    """Yield an operation within the one before it: (a - b) * c as a - b * c, or as a - (b + c)."""
    for i, inner in enumerate(o.sources if is_binary(o) else ()):
        if inner is None or not is_binary(inner):
            continue
        for j in (0, 1):
            for name, function in _BINARY.items():
                text = f"{describe(o)} is `{name}` on operand {j + 1} of {describe(inner)}"
                yield _FORMULA, text, partial(_regroup, i, j, inner, function)


def _regroup(
    i: int, j: int, inner: TracedOperation, function: Binary, o: TracedOperation
) -> torch.Tensor:
    operands, within = (
        [torch.as_tensor(x, dtype=o.result.dtype) for x in op.args] for op in (o, inner)
    )
    operands[i] = within[j]
    within[j] = function(*operands)
    result: torch.Tensor = _BINARY[inner.name](*within)
    return result


def _cross_terms(o: TracedOperation) -> Iterator[Simple]:
    """Yield a sum or difference of two products that have exchanged a factor."""
    terms = o.sources if o.name in ("add", "sub") and len(o.args) == 2 else ()
    if len(terms) != 2 or not all(t and t.name == "mul" and is_floating(t.args[1]) for t in terms):
        return
    (a, b), (c, d) = (t.args[:2] for t in terms if t)
    for words, one, other in (
        ("second factors", (a, d), (c, b)), ("first factors", (c, b), (a, d)),
        ("first and the second factor", (d, b), (c, a)),
    ):  # fmt: skip
        if one[0].shape == other[0].shape and one[1].shape == other[1].shape:
            text = f"the terms of {describe(o)} have exchanged their {words}"
            yield _FORMULA, text, partial(_of_products, one, other)


def _of_products(
    one: tuple[torch.Tensor, torch.Tensor],
    other: tuple[torch.Tensor, torch.Tensor],
    o: TracedOperation,
) -> torch.Tensor:
    return o.call(one[0] * one[1], other[0] * other[1])


def _other_signs(o: TracedOperation) -> Iterator[Simple]:
    """Yield a sum of three terms in which two have the other sign."""
    if o.name not in ("add", "sub") or len(o.args) != 2:
        return
    places = [k for k, s in enumerate(o.origins[:2]) if s and s.name in ("add", "sub")]
    inner = o.origins[places[0]] if places else None
    if inner is None or len(inner.args) != 2 or inner.result.numel() != o.result.numel():
        return
    of_inner = [torch.as_tensor(x).expand_as(inner.result).reshape(o.result.shape)
                for x in inner.args]  # fmt: skip
    sign, inner_sign = (-1 if op.name == "sub" else 1 for op in (o, inner))
    if places[0] == 0:
        terms = (of_inner[0], inner_sign * of_inner[1], sign * o.args[1])
    else:
        terms = (o.args[0], sign * of_inner[0], sign * inner_sign * of_inner[1])
    for i in range(3):
        signs = [1 if k == i else -1 for k in range(3)]
        text = f"of the three terms of {describe(o)} all but number {i + 1} have the other sign"
        yield _FORMULA, text, bind(_sum_of, [s * t for s, t in zip(signs, terms, strict=True)])


def _sum_of(_: TracedOperation, terms: list[torch.Tensor]) -> torch.Tensor:
    return terms[0] + terms[1] + terms[2]


def _other_constants(o: TracedOperation) -> Iterator[Simple]:
    """Yield a product with another constant: its reciprocal, or one of another length.

    A constant follows from a length, as `dim ** -0.5` does; so a kernel may have another length.
    """
    value = o.args[1] if o.name in ("mul", "div") and len(o.args) == 2 else None
    if not isinstance(value, float) or value == 0:
        return
    name = describe(o)
    others = {"the reciprocal of its constant": 1 / value, "the square of its constant": value**2}
    others["the root of its constant"] = abs(value) ** 0.5
    for words, other in others.items():
        yield _FORMULA, f"{name} has {words}", bind(lambda op, c: op.call(op.args[0], c), other)


def _magnitudes(o: TracedOperation) -> Iterator[Simple]:
    """Yield an operand, or the result, without its sign or squared."""
    for i, x in enumerate(o.args[:2]):
        if not is_floating(x):
            continue
        name = f"operand {i + 1} of {describe(o)}"
        if bool((x < 0).any()):
            yield _FORMULA, f"{name} has lost its sign", partial(_of_operand, i, torch.abs)
            yield _FORMULA, f"what is negative in {name} is 0", partial(_of_operand, i, torch.relu)
        else:
            yield _FORMULA, f"the root of {name} is taken", partial(_of_operand, i, torch.sqrt)
        yield _FORMULA, f"{name} is squared", partial(_of_operand, i, torch.square)
        if i == 0 and o.name in ("add", "sub"):
            yield _FORMULA, f"{name} has the other sign", partial(_of_operand, i, torch.neg)
    yield _FORMULA, f"{describe(o)} is squared", lambda op: op.result.square()
    if bool((o.result < 0).any()):
        yield _FORMULA, f"{describe(o)} has lost its sign", lambda op: op.result.abs()


def _missing_operands(o: TracedOperation) -> Iterator[Simple]:
    """Yield a product without a factor, and a result to which an operand is added once more."""
    for i, x in enumerate(o.args[:2] if is_binary(o) else ()):
        if not is_floating(x):
            continue
        name = f"operand {i + 1} of {describe(o)}"
        if o.name.startswith(("mul", "div")):
            yield _FORMULA, f"{name} is 1", partial(_of_operand, i, torch.ones_like)
        yield _FORMULA, f"{name} is added to the result", bind(_plus_operand, i)


def _plus_operand(o: TracedOperation, i: int) -> torch.Tensor:
    return o.result + o.args[i]


def _by_row(o: TracedOperation) -> Iterator[Simple]:
    """Yield a vector with an element for each column as one that has them for the rows."""
    for i, x in enumerate(o.args[:2]):
        if not is_floating(x) or x.dim() != 1 or o.result.dim() < 2 or len(x) < 2:
            continue
        rows = o.result.shape[:-1]
        n = math.prod(rows)
        if n <= len(x):
            text = f"operand {i + 1} of {describe(o)} is indexed by the row, not the column"
            shape = (*rows, 1)
            change = bind(lambda v, n, shape: v[:n].reshape(shape), n, shape)
            yield CauseCode.WRONG_STRIDE, text, partial(_of_operand, i, change)


def _of_operand(
    i: int, function: Callable[[torch.Tensor], torch.Tensor], o: TracedOperation
) -> torch.Tensor:
    return o.call(*o.args[:i], function(o.args[i]), *o.args[i + 1 :])


def _other_operands(o: TracedOperation, earlier: Sequence[TracedOperation]) -> Iterator[Simple]:
    """Yield an operand that is the result of another operation."""
    for i, x in enumerate(o.args[:2]):
        if not is_floating(x):
            continue
        for words, y in _values_before(earlier):
            if y.shape == x.shape and y is not x:
                text = f"operand {i + 1} of {describe(o)} is {words}"
                yield _FORMULA, text, partial(_of_operand, i, bind(lambda _, y: y, y))


def _values_before(earlier: Sequence[TracedOperation]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the results of operations, and what they were given, each once."""
    listed: set[int] = set()
    for other in earlier:
        operands = enumerate(other.args[:2], 1)
        values = [(f"the result of {describe(other)}", other.result)]
        values += [(f"operand {k} of {describe(other)}", x) for k, x in operands]
        for words, value in values:
            if is_floating(value) and id(value) not in listed:
                listed.add(id(value))
                yield words, value
