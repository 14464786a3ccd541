"""Tell strides, parts left out, masks and formulas apart by what the inputs' elements reach.

This is for outputs that no single change of the reference gives. The cause is named with two places
as evidence, or with the shapes at which the version is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.further_calls import passes
from triton_magics.harness.correctness.reach_probe import (
    ENOUGH_PLACES,
    Reach,
    ReachMap,
    find_miscounted,
    probe_reach,
)
from triton_magics.harness.correctness.reference_trace import trace_reference
from triton_magics.harness.correctness.rounding_experiment import has_errors_of_formula
from triton_magics.harness.correctness.skip_rules import count_programs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault
from triton_magics.model import NORMAL, PLAIN, Case, Cause, CauseCode

SMALLEST, LARGEST = 8, 100_000  # elements of the shapes that are tried
TRIES = 5
MAX_PROGRAMS = 64  # in the interpreter, about a millisecond each
LEAST_BLOCKS = (1, 64, 1024)
LINEAR = {"add", "sub", "mul", "div", "neg", "sum", "mean", "mm", "bmm", "matmul"}
LARGE_ERROR = 0.02  # of a formula, beside errors of rounding


def find_by_reach(subject: Subject, case: Case) -> Cause | None:
    """Return the cause that the reach of the inputs shows; None where it shows none.

    Args:
        subject: the version, with the same outputs for the same inputs.
        case: a wrong one.
    """
    has_nan, unreached = False, None
    for each in _plain_cases(subject, case):
        try:
            reach_map = probe_reach(subject, each)
        except (VersionRaised, UserFault):
            return None
        if reach_map is None:
            continue
        has_nan = has_nan or reach_map.has_nan
        if any(bool(r.does.any()) for r in reach_map.reaches):
            return _conclude(subject, replace(reach_map, has_nan=has_nan))
        unreached = unreached or (None if reach_map.has_nan else each)
    return _of_nothing(subject, unreached) if unreached else None


def _plain_cases(subject: Subject, case: Case) -> Iterator[Case]:
    """Yield cases of the op's small shapes with plain values, the smallest first."""
    dtype = "float32" if "float32" in subject.op.dtypes else case.dtype
    plain = case.evolve(regime=NORMAL, special=PLAIN, layouts=(), dtype=dtype, extent="", size=None)
    op = subject.op
    small = sorted((s for s in op.shapes if _is_fitting(op, s)), key=math.prod)
    own = [case.shape] if _is_fitting(op, case.shape) else []
    whole = [next(_whole_shapes(shape)) for shape in (*own, *small)[:1]]
    for shape in dict.fromkeys((*small[:1], *own, *small[1:TRIES], *whole)):
        each = plain.evolve(shape=shape)
        if not subject.is_interpreted or count_programs(subject, each) <= MAX_PROGRAMS:
            yield each


def _is_fitting(op: operators.Op, shape: tuple[int, ...]) -> bool:
    return math.prod(shape) >= SMALLEST and operators.largest_input(op, shape) <= LARGEST


def _conclude(subject: Subject, reach_map: ReachMap) -> Cause | None:
    """Return the cause: of places that are wrong, or else of the formula."""
    if error := reach_map.outside:
        return Cause(
            code=CauseCode.OUT_OF_BOUNDS, evidence=error.message, cell_line=error.cell_line,
            file_line=error.file_line,
        )  # fmt: skip
    reaches = [r for r in reach_map.reaches if bool(r.should.any())]
    if len(reaches) < ENOUGH_PLACES:
        return None
    has_extra = [name for name in _names(reaches) if _any(reaches, name, "extra")]
    has_missed = [name for name in _names(reaches) if _any(reaches, name, "missed")]
    both = [name for name in has_extra if name in has_missed]
    if both or has_extra:
        return _of_extra(subject, reach_map, both or has_extra, is_shifted=bool(both))
    if has_missed:
        return _of_missed(subject, reach_map, reaches, has_missed)
    return _of_formula(subject, reach_map)


def _names(reaches: list[Reach]) -> list[str]:
    return list(dict.fromkeys(r.name for r in reaches))


def _any(reaches: list[Reach], name: str, kind: str) -> bool:
    return any(bool(getattr(r, kind).any()) for r in reaches if r.name == name)


def _of_extra(
    subject: Subject, reach_map: ReachMap, names: list[str], *, is_shifted: bool
) -> Cause | None:
    """Return the cause of elements that reach outputs that they should not."""
    own = [r for r in reach_map.reaches if r.name in names]
    first = next(r for r in own if bool(r.extra.any()))
    text = f"{_place(first)} reaches {_first(reach_map, first.extra)}, which it should not"
    if switch := _right_switch(subject, reach_map.case):
        return _formula(f"{text}; right where {switch}")
    if is_shifted:
        lost = next(r for r in own if bool(r.missed.any()))
        text += f", and {_place(lost)} does not reach {_first(reach_map, lost.missed)}"
    is_elsewhere = any(_has_gap(reach_map, r) for r in own) or _is_of_one_row(own)
    if is_shifted or (is_elsewhere and not all(map(_counts_once, own))):
        return Cause(code=CauseCode.WRONG_STRIDE, evidence=text)
    if shape := _right_whole_shape(subject, reach_map.case):
        text += f"; right at {_x(shape)}, where no block is cut"
        return Cause(code=CauseCode.MISSING_MASK, evidence=text)
    return _formula(text)


def _is_of_one_row(reaches: list[Reach]) -> bool:
    """Return whether only elements of the first row reach too much: it is read for every row."""
    rows = {r.place[:-1]: bool(r.extra.any()) for r in reaches}
    extra = [row for row, has_extra in rows.items() if has_extra]
    return len(rows) >= ENOUGH_PLACES and len(extra) == 1 and not any(extra[0])


def _counts_once(reach: Reach) -> bool:
    """Return whether an element changes its own output as it should: others get it in addition."""
    return reach.most is None or abs(reach.times - 1) < LARGE_ERROR


def _has_gap(reach_map: ReachMap, reach: Reach) -> bool:
    """Return whether the rows that an element reaches are not all next to each other."""
    shape = reach_map.shapes[0]
    reached = reach.does[: math.prod(shape)].reshape(-1, (*shape, 1)[-1])
    rows = reached.any(1).nonzero().flatten()
    return len(rows) > 1 and int(rows[-1] - rows[0]) >= len(rows)


def _of_missed(
    subject: Subject, reach_map: ReachMap, reaches: list[Reach], names: list[str]
) -> Cause | None:
    """Return the cause of elements that do not reach the outputs that they should.

    Of blocks that are rescaled one operand alone may be lost, such as the values of an attention.
    """
    for name in names:
        own = [r for r in reaches if r.name == name]
        if len(own) >= ENOUGH_PLACES and not any(bool(r.does.any()) for r in own):
            return _formula(f"no element of {name} reaches the output")
    unset = _unset(reaches)
    missed = [r for r in reaches if bool((r.missed & ~unset).any())]
    lost = missed or [r for r in reaches if bool(r.missed.any())]
    if missed and any(bool((r.does & r.should).any()) for r in missed):
        return None  # it reaches some of them: a mask of another kind
    counted = [r for r in reaches if r not in lost and r.most is not None]
    is_linear = not _operations(subject, reach_map.case) - LINEAR
    if is_linear and not all(map(_counts_once, counted)):
        return None  # an index that is wrong beside a sum
    if _is_of_one_operand(subject, reach_map, names):
        return None
    text = f"{_place(lost[0])} does not reach {_first(reach_map, lost[0].missed)}"
    return Cause(code=CauseCode.PARTIAL_EXTENT, evidence=text)


def _is_of_one_operand(subject: Subject, reach_map: ReachMap, names: list[str]) -> bool:
    """Return whether another input of the same shape loses nothing, beside exponentials."""
    inputs = subject.make_inputs(reach_map.case).pristine
    all_names = subject.op.input_names(len(inputs))
    shapes = {n: x.shape for n, x in zip(all_names, inputs, strict=True) if is_floating(x)}
    others = {shapes[r.name] for r in reach_map.reaches if r.name in shapes.keys() - names}
    alike = any(shapes.get(name) in others for name in names)
    return alike and _has_exponentials(subject, reach_map.case)


def _unset(reaches: list[Reach]) -> torch.Tensor:
    """Return the output's elements that no input reaches, of those that one should; bool [n]."""
    should = torch.stack([r.should for r in reaches]).any(0)
    does = torch.stack([r.does for r in reaches]).any(0)
    return should & ~does


def _of_nothing(subject: Subject, case: Case) -> Cause | None:
    """Return the cause of outputs that nothing reaches: a part is left out, if blocks are right."""
    if shape := _right_whole_shape(subject, case):
        text = f"nothing reaches the output at {_x(case.shape)}, and it is right at {_x(shape)}"
        return Cause(code=CauseCode.PARTIAL_EXTENT, evidence=text)
    return None


def _of_formula(subject: Subject, reach_map: ReachMap) -> Cause | None:
    """Return the formula as the cause where neither shapes nor rounding explain the error."""
    is_clear = reach_map.error > LARGE_ERROR or has_errors_of_formula(subject, reach_map.case)
    if reach_map.has_nan or not is_clear:
        return None
    adds = subject.op.op_class != "elementwise"
    if adds and (shape := _right_whole_shape(subject, reach_map.case)):
        text = f"right at {_x(shape)}, where no block is cut"
        return Cause(code=CauseCode.WRONG_FILL, evidence=text)
    if _is_right_where_small(subject, reach_map.case):
        return _of_joined_blocks(subject, reach_map)
    n = len(reach_map.reaches)
    text = f"each of {n} elements reaches the outputs that it should, and no others"
    return _formula(f"{text}{_describe_change(reach_map)}")


def _of_joined_blocks(subject: Subject, reach_map: ReachMap) -> Cause | None:
    """Return the cause of outputs that are right at small shapes, if they hold no exponentials."""
    if _has_exponentials(subject, reach_map.case):
        return None
    if _operations(subject, reach_map.case) - LINEAR:
        changed = _describe_change(reach_map)
        return _formula(f"right at smaller shapes{changed}") if changed else None
    reach = next((r for r in reach_map.reaches if not _counts_once(r)), None)
    reach = reach or find_miscounted(subject, reach_map.case)
    if reach is None or reach.most is None:
        return None
    change = f"{_place(reach)} changes {reach_map.label(reach.most)}"
    text = f"{change} {reach.times:.3g} times as much as it should; right at smaller shapes"
    if bool(reach.missed.any()):
        return Cause(code=CauseCode.PARTIAL_EXTENT, evidence=text)
    is_again = reach.times > 1.5 and abs(reach.times - round(reach.times)) < LARGE_ERROR
    return Cause(code=CauseCode.COUNTED_AGAIN, evidence=text) if is_again else _formula(text)


def _has_exponentials(subject: Subject, case: Case) -> bool:
    """Return whether the reference computes exponentials or maxima."""
    return bool(_operations(subject, case) & {"exp", "amax"})


def _operations(subject: Subject, case: Case) -> set[str]:
    """Return the names of the operations of the reference."""
    inputs = subject.make_inputs(case).pristine
    return {o.name for o in trace_reference(subject.op, oracle.upcast(inputs))}


def _describe_change(reach_map: ReachMap) -> str:
    """Return a clause on an element that changes the output by another amount than it should."""
    for reach in reach_map.reaches:
        if reach.times is not None and abs(reach.times - 1) > LARGE_ERROR:
            output = _first(reach_map, reach.should)
            return (
                f"; {_place(reach)} changes {output} {reach.times:.3g} times as much as it should"
            )
    return ""


def _formula(text: str) -> Cause:
    return Cause(code=CauseCode.WRONG_FORMULA, evidence=text)


def _right_switch(subject: Subject, case: Case) -> str | None:
    """Return a switch with which the version is right, such as `is_causal = False`."""
    for name, values in subject.op.scalars.items():
        if set(values) == {True, False}:
            for value in (False, True):
                scalars = {**dict(case.scalars), name: value}
                if _is_right(subject, case.evolve(scalars=tuple(scalars.items()))):
                    return f"{name} = {value}"
    return None


def _whole_shapes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield shapes of whole blocks: powers of two that are no two alike, so that none is a chance.

    Dimensions of 1 stay, but for the last two.
    """
    for least in LEAST_BLOCKS:
        for wide in (2, 1):
            whole: list[int] = []
            for n in reversed(shape):
                power = 1 << (n - 1).bit_length()
                power = max(power, least) if len(whole) < wide else power
                while power > 1 and power in whole:
                    power *= 2
                whole.append(power)
            yield tuple(reversed(whole))


def _right_whole_shape(subject: Subject, case: Case) -> tuple[int, ...] | None:
    """Return a shape of whole blocks at which the version is right."""
    shapes = (s for s in dict.fromkeys(_whole_shapes(case.shape)) if s != case.shape)
    fitting = (s for s in shapes if _is_fitting(subject.op, s))
    return next((s for s in fitting if _is_right(subject, case.evolve(shape=s))), None)


def _is_right_where_small(subject: Subject, case: Case) -> bool:
    """Return whether the version is right at a smaller one of the op's shapes."""
    shapes = [s for s in subject.op.shapes if SMALLEST <= math.prod(s) < math.prod(case.shape)]
    return any(_is_right(subject, case.evolve(shape=s)) for s in shapes[:2])


def _is_right(subject: Subject, case: Case) -> bool:
    try:
        return passes(subject, case)
    except (VersionRaised, UserFault):
        return False


def _x(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _place(reach: Reach) -> str:
    return f"{reach.name}{list(reach.place)}"


def _first(reach_map: ReachMap, elements: torch.Tensor) -> str:
    return reach_map.label(int(elements.nonzero()[0]))
