"""Faults of one operation as changes of the reference: left out, exchanged, masked, rounded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch

from triton_magics.harness.correctness.block_changes import changes_of_blocks
from triton_magics.harness.correctness.formula_changes import changes_of_formula
from triton_magics.harness.correctness.reduction_changes import changes_of_reduction
from triton_magics.harness.correctness.reference_changes import (
    HALF_TYPES,
    Change,
    Simple,
    bind,
    describe,
    subtracts_maximum,
)
from triton_magics.harness.correctness.reference_trace import Apply, TracedOperation
from triton_magics.harness.correctness.softmax_changes import changes_of_softmax
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import CauseCode


def changes_of(operations: Sequence[TracedOperation]) -> Iterator[Change]:
    """Yield the changes of each operation: the simplest first, those with a parameter last."""
    for changes in (_simple, _further, changes_of_formula):
        for at, operation in enumerate(operations):
            for code, text, apply in changes(operation, operations[:at]):
                change = bind(lambda o, _, apply: apply(o), apply)
                is_simple = changes is _simple
                shifts = is_simple and code is CauseCode.MISSING_MAXIMUM
                yield Change(code, text, at, change, is_simple=is_simple, overflows=shifts)
    yield from _changes_of_uses(operations)
    for at, operation in enumerate(operations):
        for text, fitted, start in _with_parameter(operation):
            yield Change(CauseCode.WRONG_FORMULA, text, at, fitted, start=start)


def _changes_of_uses(operations: Sequence[TracedOperation]) -> Iterator[Change]:
    """Yield the simple changes of a result in one of its uses: a kernel may compute it for each."""
    uses = Counter(id(source) for o in operations for source in o.sources if source)
    for at, operation in enumerate(operations):
        for i, source in enumerate(operation.sources[:2]):
            if source is None or uses[id(source)] < 2:
                continue
            for code, text, apply in _simple(source):
                where = f"{text}, as operand {i + 1} of {describe(operation)}"
                yield Change(code, where, at, partial(_with_changed_source, i, source, apply))


def _with_changed_source(
    i: int, source: TracedOperation, apply: Apply, o: TracedOperation, _: float
) -> torch.Tensor:
    return _with_operand(i, apply(source), o)


def _simple(o: TracedOperation, _: Sequence[TracedOperation] = ()) -> Iterator[Simple]:
    yield from _skip(o)
    yield from _exchange(o)


def _further(o: TracedOperation, earlier: Sequence[TracedOperation]) -> Iterator[Simple]:
    yield from changes_of_reduction(o)
    yield from changes_of_blocks(o)
    yield from changes_of_softmax(o)
    yield from _masks(o)
    yield from _activations(o)
    yield from _gates(o)
    yield from _round(o)
    yield from _flip_signs(o)
    yield from _mix_up(o, earlier)
    yield from _other_picks(o)


def _other_picks(o: TracedOperation) -> Iterator[Simple]:
    """Yield a pick by index that takes another element of the row; 0 beyond its end."""
    if o.name != "gather" or o.args[2].dim() != 2 or o.args[1] != 1:
        return
    index = o.args[2]
    place, formula, observation = CauseCode.WRONG_STRIDE, CauseCode.WRONG_FORMULA, CauseCode.REACH
    # A neighbour may be an index one off, or the target of a formula: an observation.
    for code, words, other in (
        (place, "the first element of each row", torch.zeros_like(index)),
        (place, "the last element of each row", torch.full_like(index, o.args[0].shape[1] - 1)),
        (formula, "the element of the row's own number", torch.arange(len(index))[:, None]),
        (observation, "the element after the right one", index + 1),
        (observation, "the element before the right one", index - 1),
        (place, "the element of half the right index", index // 2),
    ):
        text = f"{describe(o)} takes {words}"
        yield code, text, bind(_pick, other.expand_as(index), False)
    text = f"{describe(o)} takes the right element of the first row"
    yield place, text, bind(_pick, index, True)


def _pick(o: TracedOperation, index: torch.Tensor, of_first_row: bool) -> torch.Tensor:
    rows: torch.Tensor = o.args[0][:1].expand_as(o.args[0]) if of_first_row else o.args[0]
    inside = (index >= 0) & (index < rows.shape[1])
    picked = rows.gather(1, index.clamp(0, rows.shape[1] - 1))
    return torch.where(inside, picked, 0.0)


def _skip(o: TracedOperation) -> Iterator[Simple]:
    """Yield the operation's arguments as its result."""
    name, result = describe(o), o.result
    if not result.dtype.is_floating_point:
        return
    shifts = subtracts_maximum(o)
    for i, x in enumerate(o.args[:2]):
        if isinstance(x, torch.Tensor) and x.shape == result.shape and is_floating(x):
            code = CauseCode.MISSING_MAXIMUM if shifts else CauseCode.WRONG_FORMULA
            text = f"{name} is left out" if i == 0 else f"{name} gives its second argument"
            yield code, text, bind(lambda op, i: op.args[i], i)
    for i, source in enumerate(o.sources):
        if source is None or not source.args:
            continue
        before = source.args[0]
        if isinstance(before, torch.Tensor) and before.shape == o.args[i].shape:
            text = f"operand {i + 1} of {name} is taken before `{source.name}`"
            shifts = o.name == "exp" and subtracts_maximum(source)
            code = CauseCode.MISSING_MAXIMUM if shifts else CauseCode.WRONG_FORMULA
            yield code, text, partial(_with_operand, i, before)
    if o.name == "reciprocal" or (o.name == "div" and not isinstance(o.args[0], torch.Tensor)):
        yield CauseCode.WRONG_FORMULA, f"{name} is left out", lambda op: op.args[-1]


def _with_operand(i: int, x: torch.Tensor, o: TracedOperation) -> torch.Tensor:
    """Call an operation with another tensor as argument i."""
    return o.call(*o.args[:i], x, *o.args[i + 1 :])


_EXCHANGED: dict[str, Callable[..., torch.Tensor]] = {
    "add": torch.sub, "sub": torch.add, "mul": torch.div, "div": torch.mul, "exp": torch.exp2,
    "log": torch.log2, "maximum": torch.minimum, "minimum": torch.maximum, "rsqrt": torch.sqrt,
    "sqrt": torch.rsqrt, "sin": torch.cos, "cos": torch.sin, "tanh": torch.sigmoid,
    "sigmoid": torch.tanh, "lt": torch.le, "le": torch.lt, "gt": torch.ge, "ge": torch.gt,
}  # fmt: skip


def _exchange(o: TracedOperation) -> Iterator[Simple]:
    """Yield the operations that are easily taken for this one."""
    if other := _EXCHANGED.get(o.name):
        text = f"{describe(o)} is `{other.__name__}`"
        yield CauseCode.WRONG_FORMULA, text, lambda op: other(*op.args[:2])
    if o.name == "add" and isinstance(o.args[1], float):
        text = f"{describe(o)} takes the larger of both"
        yield CauseCode.WRONG_FORMULA, text, lambda op: op.args[0].clamp(min=op.args[1])
    source = o.sources[0] if o.sources else None
    if o.name in ("rsqrt", "sqrt") and source and source.name == "add":
        added = source.args[1]
        if isinstance(added, float):
            inner = source.args[0]
            text = f"{added:.3g} is added after the square root, not before"
            yield CauseCode.WRONG_FORMULA, text, lambda op: _root_then_add(op, inner, added)
            text = f"{added:.3g} is added to the result of {describe(o)}"
            yield CauseCode.WRONG_FORMULA, text, lambda op: op.call(inner) + added


def _root_then_add(o: TracedOperation, inner: torch.Tensor, added: float) -> torch.Tensor:
    root = torch.sqrt(inner) + added
    return root.reciprocal() if o.name == "rsqrt" else root


def _mix_up(o: TracedOperation, earlier: Sequence[TracedOperation]) -> Iterator[Simple]:
    """Yield the result of an earlier operation in place of this one's."""
    for other in earlier if is_floating(o.result) else ():
        if other.result.shape == o.result.shape and is_floating(other.result):
            text = f"the result of {describe(other)} is taken for that of {describe(o)}"
            yield CauseCode.WRONG_FORMULA, text, bind(lambda _, x: x, other.result)


_ODD = ("erf", "tanh", "sin", "neg", "abs", "cos")  # a sign of the argument is one of the result


def _flip_signs(o: TracedOperation) -> Iterator[Simple]:
    """Yield the operation on the negated argument, and with its operands exchanged."""
    if not is_floating(o.result):
        return
    name, formula = describe(o), CauseCode.WRONG_FORMULA
    tensors = [x for x in o.args if isinstance(x, torch.Tensor)]
    if len(tensors) == 1 and o.name not in (*_ODD, "add", "sub", "mul", "div", "sum", "mean"):
        yield formula, f"{name} is taken of the negated argument", _negate_argument
        yield (
            formula,
            f"{name} is the other half: its signs are reversed",
            lambda op: -_negate_argument(op),
        )
    if o.name in ("div", "pow", "where") and len(tensors) > 1:
        text = f"the last two operands of {name} are exchanged"
        yield formula, text, lambda op: op.call(*op.args[:-2], op.args[-1], op.args[-2])


def _negate_argument(o: TracedOperation) -> torch.Tensor:
    return o.call(-o.args[0], *o.args[1:])


def _masks(o: TracedOperation) -> Iterator[Simple]:
    """Yield a mask that is left out or one place off."""
    name = describe(o)
    formula = CauseCode.WRONG_FORMULA
    if o.name == "where" and len(o.args) == 3:
        yield formula, f"{name} masks nothing", lambda op: op.args[1].expand_as(op.result)
        yield formula, f"{name} masks everything", lambda op: op.args[2].expand_as(op.result)
    if o.name == "masked_fill":
        yield formula, f"{name} masks nothing", lambda op: op.args[0]
    if o.name in ("tril", "triu", "lt", "le", "gt", "ge", "logical_not") and o.result.dim() > 1:
        for by in (-1, 1):
            text = f"the mask of {name} is one place off"
            yield formula, text, bind(lambda op, by: torch.roll(op.result, by, -1), by)
    if o.name in ("tril", "triu"):
        yield from _other_diagonals(o)


def _other_diagonals(o: TracedOperation) -> Iterator[Simple]:
    """Yield a triangle that begins elsewhere, or that follows blocks of rows."""
    name, diagonal = describe(o), o.args[1] if len(o.args) > 1 else o.kwargs.get("diagonal", 0)
    for by in (-1, 1, -2, 2, -3, 3):
        places = "one" if abs(by) == 1 else f"{abs(by)} places"
        text = f"the mask of {name} begins {'later' if by > 0 else 'earlier'} by {places}"
        change = bind(lambda op, k: op.function(op.args[0], k), diagonal + by)
        yield CauseCode.WRONG_FORMULA, text, change
    rows, columns = o.result.shape[-2:]
    row, column = torch.arange(rows)[:, None], torch.arange(columns)
    for words, visible in _other_orders(row, column) if o.name == "tril" else ():
        text = f"{name} has {words}"
        yield CauseCode.WRONG_FORMULA, text, bind(lambda op, x: x.to(op.result.dtype), visible)
    for block in (b for b in (16, 32, 64, 128) if o.name == "tril"):
        whole = o.args[0].new_ones(rows, columns)
        first = row // block * block
        for more in (0, 1, *(b for b in (16, 32, 64) if b < block)):
            visible = (column <= row + diagonal) & (column < first + more)
            text = f"rows of a block of {block} stop {more} columns after the block's first row"
            yield CauseCode.PARTIAL_EXTENT, text, bind(lambda _, x: x, whole * visible)
        for other in (b for b in (16, 32, 64) if b < block):
            visible = (column <= row + diagonal) & (column < (row // block + 1) * other)
            text = f"rows of a block of {block} stop where as many blocks of {other} end"
            yield CauseCode.PARTIAL_EXTENT, text, bind(lambda _, x: x, whole * visible)


def _other_orders(row: torch.Tensor, column: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield masks that compare other indices than those of the row and of the column."""
    yield "the columns from the row on", column >= row
    yield "the columns after the row", column > row
    yield "the row halved", column <= row // 2
    yield "the column halved", column // 2 <= row
    for block in (b for b in (16, 32, 64, 128) if b < len(row)):
        yield f"the row within its block of {block}", column <= row % block
        yield f"the column within its block of {block}", column % block <= row
        yield f"the first row of a block of {block}", column <= row // block * block
        yield f"both within their blocks of {block}", column % block <= row % block


_GATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the other half: its signs are reversed": lambda x: -torch.sigmoid(-x),
    "a step from 0 to 1": lambda x: (x > 0).to(x.dtype),
    "`tanh`": torch.tanh,
    "that of 1.702 x": lambda x: torch.sigmoid(1.702 * x),
    "the normal distribution's": lambda x: 0.5 * (1 + torch.erf(x * math.sqrt(0.5))),
    "a line between 0 and 1 (x / 6 + 0.5)": lambda x: (x / 6 + 0.5).clamp(0, 1),
    "a line between 0 and 1 (x / 5 + 0.5)": lambda x: (0.2 * x + 0.5).clamp(0, 1),
    "`relu`": torch.relu,
}


def _gates(o: TracedOperation) -> Iterator[Simple]:
    """Yield other functions in place of a sigmoid, 1 / (1 + exp(-x))."""
    added = o.sources[0] if o.name == "reciprocal" else None
    power = added.sources[0] if added and added.name == "add" else None
    negated = power.sources[0] if power and power.name == "exp" else None
    if negated and negated.name == "neg":
        for words, function in _GATES.items():
            text = f"the sigmoid is {words}"
            yield CauseCode.WRONG_FORMULA, text, bind(lambda _, x: x, function(negated.args[0]))


def _activations(o: TracedOperation) -> Iterator[Simple]:
    """Yield other forms of functions that kernels write by hand."""
    formula = CauseCode.WRONG_FORMULA
    if o.name == "relu":
        text = "elements are multiplied by 0 or 1, and infinity times 0 is NaN"
        yield formula, text, lambda op: op.args[0] * (op.args[0] > 0)
        yield formula, "negative elements keep their magnitude", lambda op: op.args[0].abs()
        yield (
            CauseCode.NAN_LOST,
            "NaN becomes 0",
            lambda op: torch.nan_to_num(op.result, nan=0.0, posinf=math.inf, neginf=-math.inf),
        )
    if o.name == "erf":
        c = 2 / math.sqrt(math.pi)
        yield (
            formula,
            "`erf` is approximated by tanh of a cubic",
            lambda op: torch.tanh(c * (op.args[0] + 0.08943 * op.args[0] ** 3)),
        )
        yield (
            formula,
            "`erf` is approximated by a sigmoid",
            lambda op: torch.tanh(0.851 * math.sqrt(2) * op.args[0]),
        )


def _round(o: TracedOperation) -> Iterator[Simple]:
    """Yield the result in a lower precision."""
    if o.result.dtype.is_floating_point:
        for dtype, kind in HALF_TYPES.items():
            text = f"{describe(o)} is rounded to {dtype}"
            yield CauseCode.LOWER_PRECISION, text, bind(lambda op, k: op.result.to(k), kind)


_Fitted = tuple[str, Callable[[TracedOperation, float], torch.Tensor], float]


def _with_parameter(o: TracedOperation) -> Iterator[_Fitted]:
    """Yield changes with a parameter, `{}` in the text, and where its search starts."""
    if not o.result.dtype.is_floating_point:
        return
    name = describe(o)
    yield f"{name} is {{}} times as large", lambda op, c: op.result * c, 1.0
    yield f"{{}} is added to {name}", lambda op, c: op.result + c, 0.0
    if o.name == "relu":
        text = "negative elements are multiplied by {}"
        yield text, lambda op, c: torch.where(op.args[0] < 0, op.args[0] * c, op.args[0]), 0.0
