"""Tell indices, parts left out, masks and formulas apart by what the inputs' elements reach.

This is for outputs that no single change of the reference gives. The elements that are reached
suggest causes; further calls confirm one, or else the places alone are shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.block_shapes import (
    SMALLEST,
    is_affordable,
    is_fitting,
    iter_whole,
    list_several_blocks,
    list_whole,
)
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.half_reach import Separation, Unread
from triton_magics.harness.correctness.hypotheses import (
    Hypothesis,
    Prediction,
    Trial,
    find_confirmed,
    fresh,
    make_constant,
    make_equal,
)
from triton_magics.harness.correctness.reach_probe import (
    ENOUGH_PLACES,
    Reach,
    ReachMap,
    probe_reach,
)
from triton_magics.harness.correctness.rounding_experiment import has_errors_of_formula
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault
from triton_magics.model import NORMAL, PLAIN, Case, Cause, CauseCode

TRIES = 5
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
            return _Reached(subject, replace(reach_map, has_nan=has_nan)).conclude()
        unreached = unreached or (None if reach_map.has_nan else each)
    return _of_nothing(subject, unreached) if unreached else None


def _plain_cases(subject: Subject, case: Case) -> Iterator[Case]:
    """Yield cases of the op's small shapes with plain values, the smallest first."""
    dtype = "float32" if "float32" in subject.op.dtypes else case.dtype
    plain = case.evolve(regime=NORMAL, special=PLAIN, layouts=(), dtype=dtype, extent="", size=None)
    op = subject.op
    small = sorted((s for s in op.shapes if is_fitting(op, s)), key=math.prod)
    own = [case.shape] if is_fitting(op, case.shape) else []
    few = (*(min(n, 2) for n in case.shape[:-2]), *case.shape[-2:])
    whole = [next(iter_whole(shape)) for shape in (*own, *small)[:1]]
    for shape in dict.fromkeys((*small[:1], *own, *small[1:TRIES], *whole, few)):
        each = plain.evolve(shape=shape)
        if is_affordable(subject, each):
            yield each


def _of_nothing(subject: Subject, case: Case) -> Cause | None:
    """Return the cause of outputs that nothing reaches: a part is left out, if blocks are right."""
    text = f"nothing reaches the output at {_x(case.shape)}, and it is right at "
    return find_confirmed(subject, _at_whole_blocks(subject, case, CauseCode.PARTIAL_EXTENT, text))


@dataclass(frozen=True)
class _Reached:
    """Reach of the inputs of a wrong case, and the causes that fit.

    Attributes:
        subject: the version.
        reach_map: of the case.
    """

    subject: Subject
    reach_map: ReachMap

    @property
    def case(self) -> Case:
        return self.reach_map.case

    @cached_property
    def reaches(self) -> list[Reach]:
        """Return those of the places that should reach something."""
        return [r for r in self.reach_map.reaches if bool(r.should.any())]

    @cached_property
    def extra(self) -> list[Reach]:
        """Return the places that reach elements that they should not."""
        return [r for r in self.reaches if bool(r.extra.any())]

    @cached_property
    def missed(self) -> list[Reach]:
        """Return the places that do not reach elements that they should."""
        return [r for r in self.reaches if bool(r.missed.any())]

    def conclude(self) -> Cause | None:
        """Return the cause that further calls confirm, or else what was observed."""
        if error := self.reach_map.outside:
            return Cause(
                code=CauseCode.OUT_OF_BOUNDS, evidence=error.message,
                cell_line=error.cell_line, file_line=error.file_line,
            )  # fmt: skip
        if len(self.reaches) < ENOUGH_PLACES:
            return None
        if cause := find_confirmed(self.subject, self._hypotheses()):
            return cause
        return self._observation

    @property
    def _observation(self) -> Cause | None:
        """Return what was seen, where no cause of it is confirmed."""
        if self.extra or self.missed:
            return Cause(code=CauseCode.REACH, evidence=self._places)
        right = next((t for t in self._smaller if t.is_right(self.subject)), None)
        if right is None or not self._is_clear:
            return None
        text = f"right at {_x(right.case.shape)}, wrong at {_x(self.case.shape)}{self._amount}"
        return Cause(code=CauseCode.REACH, evidence=text)

    def _hypotheses(self) -> Iterator[Hypothesis]:
        if self.reach_map.zeros_around:  # at a larger shape it may read where no memory is
            if self._is_moved:
                yield self._of_moved((Trial(fresh(self.case)),))
            return
        if self.extra or self.missed:
            yield from self._of_index()
        if self.extra:
            yield from self._of_switch()
        if self.extra and not self.missed:
            text = f"{self._places}; right at "
            yield from _at_whole_blocks(self.subject, self.case, CauseCode.MISSING_MASK, text)
        if self.missed and not self.extra:
            yield from self._of_part()
        if not self.extra and not self.missed and self._is_clear:
            if self.subject.op.op_class != "elementwise":
                yield from _at_whole_blocks(self.subject, self.case, self._code_of_end, "right at ")
            n = len(self.reach_map.reaches)
            text = f"each of {n} elements reaches the outputs that it should, and no others"
            yield self._of_formula(f"{text}{self._amount}")

    @property
    def _code_of_end(self) -> CauseCode:
        """Return a fill as the cause of what whole blocks give right, if the source shows one.

        A mean may as well be divided by the length of its blocks.
        """
        hint = self.subject.hint("last dimension is no power of two")
        return CauseCode.WRONG_FILL if hint else CauseCode.REACH

    def _of_index(self) -> Iterator[Hypothesis]:
        """Yield a wrong index: of a tensor of one value each index reads the same.

        It shifts the elements of a tensor, or gives them to rows that lie apart as well; a
        reduction over a wrong axis joins neighbours.
        """
        wrong: tuple[Trial, ...] = (Trial(fresh(self.case)),)
        for names in filter(self._is_telling, self._blamed):
            for case in (self.case, *self._whole_cases):
                here = "" if case is self.case else f" at {_x(case.shape)}"
                have = "has" if len(names) == 1 else "have"
                text = f"{self._places}; right where {' and '.join(names)} {have} one value{here}"
                yield Hypothesis(
                    Cause(code=CauseCode.WRONG_STRIDE, evidence=text),
                    right=(Trial(case, names), Trial(fresh(case), names)),
                    wrong=(*wrong, Trial(fresh(case))),
                )
        is_apart = not self.missed and any(map(self._has_gap, self.extra))
        if is_apart or _names(self.extra) & _names(self.missed):
            wrong = (*wrong, *(trial for _, trial in self._switched))
            for names, dim in self._dimensions_of(_names(self.extra)):
                equal = (Trial(case, equal=(names, dim)) for case in (self.case, fresh(self.case)))
                are = f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
                text = f"{self._places}; right where {are} equal along dimension {dim}"
                cause = Cause(code=CauseCode.WRONG_STRIDE, evidence=text)
                yield Hypothesis(cause, right=tuple(equal), wrong=wrong)
        if self._is_moved:
            yield self._of_moved(wrong)

    def _of_moved(self, wrong: tuple[Prediction, ...]) -> Hypothesis:
        return Hypothesis(Cause(code=CauseCode.WRONG_STRIDE, evidence=self._places), wrong=wrong)

    @property
    def _is_moved(self) -> bool:
        """Return whether an element reaches others in place of all that it should.

        In a reduction over another axis it still reaches some of its own.
        """
        moved = _names(self.extra) & _names(self.missed)
        return any(r.name in moved and not bool((r.does & r.should).any()) for r in self.extra)

    @cached_property
    def _whole_cases(self) -> list[Case]:
        """Return the case at small shapes of whole blocks, where no index goes past the end."""
        shapes = list_whole(self.subject.op, self.case.shape)[:2]
        cases = (self.case.evolve(shape=shape) for shape in shapes)
        return [case for case in cases if is_affordable(self.subject, case)]

    def _dimensions_of(self, names: set[str]) -> list[tuple[tuple[str, ...], int]]:
        """Return the dimensions of these inputs along which equal values show faults.

        The right output has to follow the values that are equal along one. Inputs of one shape,
        such as keys and values, may have one wrong index.
        """
        inputs = self.subject.make_inputs(self.case).pristine
        others = self.subject.make_inputs(fresh(self.case)).pristine
        pairs = zip(self.subject.op.input_names(len(inputs)), inputs, strict=True)
        shapes = {name: tuple(x.shape) for name, x in pairs if name in names}
        alike = (tuple(n for n in shapes if shapes[n] == s) for s in shapes.values())
        groups = dict.fromkeys([*((name,) for name in shapes), *alike])

        def evaluate(
            values: tuple[object, ...], own: tuple[str, ...], d: int
        ) -> list[torch.Tensor]:
            return self._evaluate(make_equal(self.subject, values, own, d))

        return [
            (own, d) for own in groups for d, n in enumerate(shapes[own[0]])
            if n > 1 and not _is_alike(evaluate(inputs, own, d), evaluate(others, own, d))
        ]  # fmt: skip

    def _has_gap(self, reach: Reach) -> bool:
        """Return whether the rows that an element reaches are not all next to each other."""
        shape = self.reach_map.shapes[0]
        reached = reach.does[: math.prod(shape)].reshape(-1, (*shape, 1)[-1])
        rows = reached.any(1).nonzero().flatten()
        return len(rows) > 1 and int(rows[-1] - rows[0]) >= len(rows)

    def _of_switch(self) -> Iterator[Hypothesis]:
        """Yield a formula that is right with one value of a switch, such as `is_causal = False`."""
        for text, trial in self._switched:
            cause = _formula(f"{self._places}; right where {text}")
            yield Hypothesis(cause, right=(trial,), wrong=(Trial(fresh(self.case)),))

    @cached_property
    def _switched(self) -> list[tuple[str, Trial]]:
        """Return calls with other values of a switch."""
        other = fresh(self.case)
        own = dict(other.scalars)
        return [
            (f"{name} = {value}", Trial(other.evolve(scalars=tuple({**own, name: value}.items()))))
            for name, values in self.subject.op.scalars.items() if set(values) == {True, False}
            for value in (False, True)
        ]  # fmt: skip

    def _of_part(self) -> Iterator[Hypothesis]:
        """Yield a part left out: it reaches nothing, though other elements reach its outputs.

        Of blocks that are rescaled one operand alone may be lost, such as the values of attention.
        One number of several inputs does not show what an index reads instead.
        """
        switched = (trial for _, trial in self._switched)
        wrong = (*self._unlike_index, Trial(fresh(self.case)), *switched)
        several = list_several_blocks(self.subject, self.case)
        separate = tuple(map(Separation, several))
        for name in sorted(_names(self.missed)):
            own = [r for r in self.reaches if r.name == name]
            if len(own) >= ENOUGH_PLACES and not any(bool(r.does.any()) for r in own):
                yield from self._of_unread(name, several, wrong)
                return
        should = torch.stack([r.should for r in self.reaches]).any(0)
        unset = should & ~torch.stack([r.does for r in self.reaches]).any(0)
        lost = [r for r in self.missed if bool((r.missed & ~unset).any())]
        is_part = not any(bool((r.does & r.should).any()) for r in lost)
        is_one_number = self.reach_map.wrong.numel() == 1 and len(_names(self.reaches)) > 1
        is_sure = lost and is_part and not is_one_number and not self._is_of_one_operand
        if is_sure and separate:
            cause = Cause(code=CauseCode.PARTIAL_EXTENT, evidence=self._places)
            yield Hypothesis(cause, right=separate, wrong=wrong)

    def _of_unread(
        self, name: str, several: list[Case], wrong: tuple[Prediction, ...]
    ) -> Iterator[Hypothesis]:
        """Yield a formula without an input; a part left out if the input reaches longer outputs."""
        unread = tuple(Unread(each, name) for each in several)
        text = f"no element of {name} reaches the output"
        yield Hypothesis(_formula(text), right=unread, wrong=wrong)
        if several:
            text = f"{text} at {_x(self.case.shape)}, though some do at {_x(several[0].shape)}"
            cause = Cause(code=CauseCode.PARTIAL_EXTENT, evidence=text)
            yield Hypothesis(cause, right=tuple(map(Separation, several)), wrong=(*wrong, *unread))

    def _of_formula(self, text: str) -> Hypothesis:
        """Return the hypothesis that the formula is wrong everywhere, at whole blocks too.

        An output of one number does not show which elements an index exchanges.
        """
        other = fresh(self.case)
        is_one_number = self.reach_map.wrong.numel() == 1
        dims = self._dimensions_of(_names(self.reaches)) if is_one_number else []
        equal = [Trial(self.case, equal=each) for each in dims]
        whole = [Trial(other.evolve(shape=s)) for s in list_whole(self.subject.op, self.case.shape)]
        wrong = (Trial(other), *self._smaller, *whole, *self._unlike_index, *equal)
        return Hypothesis(_formula(text), wrong=wrong)

    @cached_property
    def _smaller(self) -> list[Trial]:
        """Return calls at smaller ones of the op's shapes."""
        n = math.prod(self.case.shape)
        shapes = [s for s in self.subject.op.shapes if SMALLEST <= math.prod(s) < n]
        return [Trial(fresh(self.case).evolve(shape=s)) for s in shapes[:2]]

    @cached_property
    def _unlike_index(self) -> tuple[Trial, ...]:
        """Return the calls that a wrong index gives right."""
        return tuple(Trial(self.case, names) for names in self._blamed if self._is_telling(names))

    @cached_property
    def _blamed(self) -> list[tuple[str, ...]]:
        """Return the inputs that may have a wrong index: each one whose places are wrong, or all.

        A scalar output shows no wrong places; there it may be any input.
        """
        blamed = _names(self.extra) | _names(self.missed) or _names(self.reaches)
        names = sorted(blamed & _names(self.reaches))
        return list(dict.fromkeys([*((n,) for n in names), tuple(names)]))

    def _is_telling(self, names: tuple[str, ...]) -> bool:
        """Return whether faults but those of an index show where these inputs have one value.

        The right output has to follow this value, and every other input.
        """
        inputs = self.subject.make_inputs(self.case).pristine
        others = self.subject.make_inputs(fresh(self.case)).pristine
        first, second = (make_constant(self.subject, inputs, names, i) for i in (0, 1))
        right = self._evaluate(first)
        if _is_alike(right, self._evaluate(second)):
            return False
        all_names = self.subject.op.input_names(len(inputs))
        for i, (name, x) in enumerate(zip(all_names, inputs, strict=True)):
            if isinstance(x, torch.Tensor) and name not in names:
                changed = (*first[:i], others[i], *first[i + 1 :])
                if _is_alike(right, self._evaluate(changed)):
                    return False
        return True

    def _evaluate(self, values: tuple[object, ...]) -> list[torch.Tensor]:
        return list(oracle.evaluate(self.subject.op, oracle.upcast(values))[1])

    @property
    def _is_of_one_operand(self) -> bool:
        """Return whether another input of the same shape loses nothing."""
        inputs = self.subject.make_inputs(self.case).pristine
        pairs = zip(self.subject.op.input_names(len(inputs)), inputs, strict=True)
        shapes = {name: x.shape for name, x in pairs if is_floating(x)}
        lost = _names(self.missed)
        others = {shapes[n] for n in _names(self.reaches) & shapes.keys() - lost}
        return any(shapes.get(name) in others for name in lost)

    @property
    def _is_clear(self) -> bool:
        """Return whether the error is too large for one of rounding, or follows the inputs."""
        error = self.reach_map.error
        is_clear = error > LARGE_ERROR or has_errors_of_formula(self.subject, self.case)
        return is_clear and not self.reach_map.has_nan

    @property
    def _places(self) -> str:
        """Return a clause on places that reach what they should not, or not what they should."""
        parts = []
        if self.extra:
            first = self.extra[0]
            output = _first(self.reach_map, first.extra)
            parts.append(f"{_place(first)} reaches {output}, which it should not")
        if self.missed:
            first = self.missed[0]
            output = _first(self.reach_map, first.missed)
            parts.append(f"{_place(first)} does not reach {output}")
        return ", and ".join(parts)

    @property
    def _amount(self) -> str:
        """Return a clause on an element that changes the output by another amount."""
        for reach in self.reach_map.reaches:
            if abs(reach.times - 1) > LARGE_ERROR:
                output = _first(self.reach_map, reach.should)
                times = f"{reach.times:.3g} times as much as it should"
                return f"; {_place(reach)} changes {output} {times}"
        return ""


def _names(reaches: list[Reach]) -> set[str]:
    return {r.name for r in reaches}


def _is_alike(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    return all(torch.allclose(a, b, rtol=1e-4) for a, b in zip(one, other, strict=True))


def _formula(text: str) -> Cause:
    return Cause(code=CauseCode.WRONG_FORMULA, evidence=text)


def _at_whole_blocks(
    subject: Subject, case: Case, code: CauseCode, text: str
) -> Iterator[Hypothesis]:
    """Yield the cause for each shape of whole blocks, at which the version has to be right."""
    for shape in list_whole(subject.op, case.shape):
        cause = Cause(code=code, evidence=f"{text}{_x(shape)}, where no block is cut")
        whole = case.evolve(shape=shape)
        yield Hypothesis(
            cause, right=(Trial(whole), Trial(fresh(whole))), wrong=(Trial(fresh(case)),)
        )


def _x(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _place(reach: Reach) -> str:
    return f"{reach.name}{list(reach.place)}"


def _first(reach_map: ReachMap, elements: torch.Tensor) -> str:
    return reach_map.label(int(elements.nonzero()[0]))
