"""Shapes and parameters with the numbers of the version's source, which a plan does not have yet.

A kernel takes another path at a number that it names: `if n_cols <= 4096`, `heads & 31`, `n % 96`.
For each such number a dimension should have that length, and one more where nothing else is longer.
The last two should have one more in any case, as a limit is often `>=`. They should also have three
times as many, which are whole blocks of it and not of twice it.
A parameter such as `alpha` should have the number too, with either sign, and the tensors values
around it: a kernel clamps, or takes an approximation, from a value on.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

import torch

from triton_magics import operators
from triton_magics.harness.correctness.call_record import outputs_of
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.shape_classes import (
    MAX_FULL,
    MAX_FULL_COLUMNS,
    MAX_INTERPRETED,
    Shape,
    extents,
    has_many_programs,
    interpreter_cost,
)
from triton_magics.harness.correctness.shape_variants import is_defined, keep_orders, plain_shape
from triton_magics.harness.correctness.special_values import NAN_BESIDE_PAST, NEAR, PAST
from triton_magics.model import Case

MAX_SHAPES, MAX_COMPILED, MAX_THOROUGH = 6, 4, 24  # in the interpreter; on a GPU; with --thorough
MAX_PAST, MAX_WITH_NAN = 4, 2
_LEAST_LEVEL, _MOST_LEVEL = 4, 128
MODERATE = 2**16
MAX_VALUES, MAX_TRIES = 3, 24  # of each parameter; shapes that the reference is called with
MAX_BESIDE, _SIDE = 4, 0.02  # values of a parameter beside thresholds; how far from them
_MAX_BLOCKS = 130  # in the interpreter, about 0.1 s
_SMALLEST = 3
_FEW = 2
_LEAST, _MOST, _LEAST_HALF, _MOST_HALF = 1e-6, 1e5, 1e-3, 1e3  # of values; in float16
_USUAL = (1 / 32, 32)  # what normal values, and ten times and a tenth of them, have often
_CPU = torch.device("cpu")
_PRODUCT_NAMES = {3: ("rows", "columns", "terms"), 4: ("batches", "heads", "positions", "head_dim")}


def shapes_at_numbers(
    op: operators.Op,
    numbers: Sequence[int],
    planned: Collection[Shape],
    *,
    plan: str,
    is_interpreted: bool,
) -> Mapping[str, Shape]:
    """Return shapes with the lengths that are missing, by name: `96 positions`.

    A length is between those that the op declares for its dimension, and a multiple of what they
    are multiples of. A shape has several of the lengths, if the device computes that quickly.

    Args:
        op: an op; one without shapes is computed at its sizes only.
        numbers: positive integers of a source.
        planned: the shapes of the other cases.
        plan: `full` or `thorough`.
        is_interpreted: an interpreter runs the kernels.
    """
    if not op.shapes:
        return {}
    rank = len(operators.smallest_shape(op))
    own = [s for s in (*op.shapes, *op.sizes.values()) if len(s) == rank]
    base = min(own, key=lambda s: (1 in s[-2:], math.prod(s)))
    small = tuple(min(n, _FEW) for n in base)  # leaves room for a long dimension
    is_possible = functools.cache(partial(is_defined, op))
    most = MAX_SHAPES if is_interpreted else MAX_COMPILED
    most = MAX_THOROUGH if plan == "thorough" else most
    chosen: list[Shape] = []
    for dim, length in _missing(op, numbers, planned, rank):
        if is_possible.cache_info().misses >= MAX_TRIES:
            break
        for i, shape in enumerate((*chosen, base, small)):
            longer = keep_orders(op, (*shape[:dim], length, *shape[dim + 1 :]))
            is_room = i < len(chosen) or len(chosen) < most
            is_new = shape[dim] in (base[dim], small[dim]) and longer[dim] == length and is_room
            if is_new and _is_cheap(op, longer, is_interpreted) and is_possible(longer):
                chosen[i : i + 1] = [longer]
                break
    return {_name(op, shape, base): shape for shape in chosen}


def scalars_at_numbers(
    op: operators.Op, numbers: Sequence[float], thresholds: Collection[float] = ()
) -> list[tuple[str, float]]:
    """Return values of the op's float parameters that it does not declare, each with its name.

    They are within the range of those that it declares, not nearer to 0 than these, and the
    reference is finite there. 1 and -1 are among the numbers: a kernel may leave out a factor
    there; 0 has cases of its own (`ValueCases`). Beside a threshold they lie on both sides: a path
    is weakest at its end.
    """
    chosen: list[tuple[str, float]] = []
    for name, declared in op.scalars.items():
        if any(type(value) is not float for value in declared):
            continue
        least = min((abs(v) for v in declared if v), default=0.0)
        signed = [sign * float(n) for n in (1, *reversed(numbers)) for sign in (1, -1)]
        inside = (v for v in signed if min(declared) <= v <= max(declared) and v not in declared)
        usable = (v for v in dict.fromkeys(inside) if abs(v) >= least)
        ends = [n for n in (*declared, *numbers) if n in thresholds and n and abs(n) >= least]
        beside = (n * (1 + side) for n in dict.fromkeys(ends) for side in (-_SIDE, _SIDE))
        within = (v for v in beside if min(declared) <= v <= max(declared))
        finite, near = (filter(partial(is_finite_at, op, name), each) for each in (usable, within))
        chosen += [(name, value) for value in itertools.islice(finite, MAX_VALUES)]
        chosen += [(name, value) for value in itertools.islice(near, MAX_BESIDE)]
    return chosen


def moderate_shape(op: operators.Op) -> Shape:
    """Return the longest declared shape of at most `MODERATE` elements, for an op's own check.

    Few elements show no dependence between random numbers.
    """
    own = op.shapes or (operators.smallest_shape(op),)
    return max((s for s in own if math.prod(s) <= MODERATE), key=math.prod, default=own[0])


def values_at_numbers(
    op: operators.Op, numbers: Sequence[float], dtypes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return special values near numbers that usual values pass by, each with a dtype in turn.

    Those written as fractions or powers of ten come first: an integer is rather a length.
    """
    usable = [n for n in numbers if _LEAST <= n <= _MOST and not _USUAL[0] <= n <= _USUAL[1]]
    usable.sort(key=lambda n: (not isinstance(n, float), n < 1, -n))
    chosen: list[tuple[str, str]] = []
    for number in dict.fromkeys(usable):
        regime = "large" if number > 1 else "tiny"
        within = [d for d in dtypes if not operators.skips(op, regime, d)]
        if "float16" in within and not _LEAST_HALF <= number <= _MOST_HALF:
            within.remove("float16")
        if within:
            chosen.append((f"{NEAR}{float(number)!r}", within[len(chosen) % len(within)]))
    return chosen[:MAX_VALUES]


def values_past_numbers(
    op: operators.Op, numbers: Sequence[float], thresholds: Collection[float], dtypes: Sequence[str]
) -> list[tuple[str, str]]:
    """Return special values that are all past a number, or all below its opposite, with a dtype.

    Usual values pass by a number on either side within a tile. Numbers that something is compared
    with come first. Whole numbers over 100 are lengths. What is left of exp far below 0 is 0 in a
    half type, so the values below a number have the first dtype. Of an elementwise op, the
    first ones also have a NaN beside them: others of a tile tell nothing of it.
    """
    usable = [n for n in numbers if _USUAL[0] <= n <= (_MOST_HALF if isinstance(n, float) else 100)]
    usable.sort(key=lambda n: (n not in thresholds, not isinstance(n, float), n < 1, -n))
    signed = [sign * n for n in dict.fromkeys(usable) if n != 1 for sign in (1.0, -1.0)]
    takes_large = {"large", "mean_heavy"}.isdisjoint(op.skip_values)
    possible = [
        n
        for n in signed
        if (n > 0 or "negative" not in op.skip_values) and (takes_large or abs(n) <= _USUAL[1])
    ]
    own = (dtypes[i % len(dtypes)] if n > 0 else dtypes[0] for i, n in enumerate(possible))
    chosen = [*zip(possible, own, strict=True)][:MAX_PAST]
    has_nan = op.op_class == "elementwise" and op.defined_for_nonfinite
    n_with_nan = MAX_WITH_NAN if has_nan and "nonfinite" not in op.skip_values else 0
    return [
        *((f"{PAST}{n!r}", dtype) for n, dtype in chosen),
        *((f"{NAN_BESIDE_PAST}{n!r}", dtype) for n, dtype in chosen[:n_with_nan]),
    ]


def levels_at_numbers(
    numbers: Sequence[float], thresholds: Collection[float], *, n_most: int
) -> list[float]:
    """Return distances of levels that a kernel for weights may treat in another way.

    They are numbers of the source that something is compared with, or that are written as
    fractions.
    """
    usable = [n for n in numbers if n in thresholds or isinstance(n, float)]
    own = [float(n) for n in usable if _LEAST_LEVEL <= n <= _MOST_LEVEL]
    own.sort(key=lambda n: (n not in thresholds, -n))
    return [*itertools.islice(dict.fromkeys(own), n_most)]


def is_finite_at(op: operators.Op, name: str, value: float) -> bool:
    """Return whether the reference is finite with this value of a parameter."""
    case = Case(shape=plain_shape(op), dtype=op.dtypes[0], scalars=((name, value),), seed=1)
    try:
        with torch.no_grad():
            outputs = outputs_of(op.reference(*make_pristine(op, case, _CPU)))
    except Exception:  # noqa: BLE001 (the op's own code, which may need a GPU)
        return False
    return all(bool(x.isfinite().all()) for x in outputs if isinstance(x, torch.Tensor))


def _missing(
    op: operators.Op, numbers: Sequence[int], planned: Collection[Shape], rank: int
) -> Iterator[tuple[int, int]]:
    """Yield (dimension, length): large numbers and the last dimensions first, multiples last."""
    device_kinds = (extents(op, is_interpreted=kind) for kind in (False, True))
    declared = [*op.shapes, *op.sizes.values(), *(s for own in device_kinds for s in own.values())]
    possible, have = (_lengths(shapes, rank) for shapes in (declared, planned))
    usable = sorted({n for n in numbers if n >= _SMALLEST}, reverse=True)
    for is_further, number, dim in itertools.product((False, True), usable, reversed(range(rank))):
        for length in _lengths_at(number, max(have[dim]), is_further=is_further):
            step, longest = math.gcd(*possible[dim]), max(possible[dim])
            fits = min(possible[dim]) <= length <= longest and length % step == 0
            if fits and length not in have[dim] and (dim >= rank - 2 or not is_further):
                have[dim].add(length)
                yield dim, length


def _lengths_at(number: int, longest: int, *, is_further: bool) -> tuple[int, ...]:
    """Return the lengths to have for a number: first itself, then whole blocks and just beyond."""
    if is_further:
        return (3 * number, number + 1)
    return (number + 1, number) if longest <= number else (number,)


def _lengths(shapes: Collection[Shape], rank: int) -> list[set[int]]:
    """Return the lengths that each dimension has in shapes of this rank."""
    return [{s[dim] for s in shapes if len(s) == rank} for dim in range(rank)]


def _is_cheap(op: operators.Op, shape: Shape, is_interpreted: bool) -> bool:
    """Return whether a device computes this shape quickly."""
    if not is_interpreted:
        return math.prod(shape) <= MAX_FULL and shape[-1] <= MAX_FULL_COLUMNS
    is_small = interpreter_cost(op, shape) <= _MAX_BLOCKS and math.prod(shape) <= MAX_INTERPRETED
    return is_small and not has_many_programs(op, shape)


def _name(op: operators.Op, shape: Shape, base: Shape) -> str:
    rank = len(shape)
    names = _PRODUCT_NAMES.get(rank) if op.op_class == "matmul" else None
    names = names or (*(f"in dimension {i}" for i in range(rank)), "rows", "columns")[-rank:]
    pairs = zip(names, shape, base, strict=True)
    return ", ".join(f"{n:,} {name}" for name, n, other in pairs if n != other)
