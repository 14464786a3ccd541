"""Tell which values of a wrong case its failure needs, by cases that differ in one value.

A case differs from plain inputs in several values at once: a layout of each tensor, a dtype, a
parameter, a regime, a special value. A value without which the case is right is needed. What the
other values are is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from triton_magics.model import CONTIGUOUS, EVERY_INPUT, NORMAL, PLAIN, Case, Scalar

MAX_OTHERS = 3  # values of a field, of failed cases and of others, tried in place of its own

Passes = Callable[[Case], bool | None]  # None: the case could not be run


class Field(StrEnum):
    """Kind of a value that a plan chooses for a case."""

    SPECIAL = "special"
    REGIME = "regime"
    LAYOUT = "layout"
    SCALAR = "scalar"
    DTYPE = "dtype"


_PLAIN = {Field.SPECIAL: PLAIN, Field.REGIME: NORMAL, Field.LAYOUT: CONTIGUOUS}
_OF_VALUES = (Field.SPECIAL, Field.REGIME)


class CaseValue(NamedTuple):
    """A value of a case.

    Attributes:
        field, name: which one; the name is that of a tensor or a parameter, or empty.
        value: of it.
    """

    field: Field
    name: str
    value: Scalar | str

    @property
    def text(self) -> str:
        """Return it for readers: `x transposed`, `p=0.5`, `float16`."""
        if self.field is Field.LAYOUT and self.name != EVERY_INPUT:
            return f"{self.name} {self.value}"
        return f"{self.name}={self.value}" if self.field is Field.SCALAR else str(self.value)

    def read(self, case: Case) -> Scalar | str | None:
        """Return the value of a case, None for a parameter that is left to `make_inputs`."""
        match self.field:
            case Field.LAYOUT:
                return case.layout_of(self.name)
            case Field.SCALAR:
                return dict(case.scalars).get(self.name)
            case _:
                return str(getattr(case, self.field.value))

    def change(self, case: Case) -> Case:
        """Return the case with this value."""
        match self.field:
            case Field.LAYOUT:
                layouts = {**dict(case.layouts), self.name: str(self.value)}
                others = ((name, own) for name, own in layouts.items() if own != CONTIGUOUS)
                return case.evolve(layouts=tuple(others))
            case Field.SCALAR:
                scalars = {**dict(case.scalars), self.name: self.value}
                return case.evolve(scalars=tuple(scalars.items()))
            case _:
                return case.evolve(**{self.field.value: self.value})


@dataclass(frozen=True)
class NeededValue:
    """Values of one field that a failure needs.

    Attributes:
        wrong, right: values with which a case is wrong, and right.
    """

    wrong: tuple[CaseValue, ...]
    right: tuple[CaseValue, ...]

    @property
    def text(self) -> str:
        """Return it for readers: `x transposed`, `x not contiguous`, `every dtype but float32`."""
        if not self._is_all_but_one:
            first, *others = self.wrong
            return " or ".join([first.text, *(str(other.value) for other in others)])
        field, name, value = self.right[0]
        is_layout = field is Field.LAYOUT
        return f"{name} not {value}" if is_layout else f"every {name or field} but {value}"

    @property
    def _is_all_but_one(self) -> bool:
        is_open = self.wrong[0].field in _OF_VALUES  # few of the others are tried
        return len(self.wrong) > 1 and len(self.right) == 1 and not is_open

    def is_of(self, case: Case) -> bool:
        """Return whether a case has one of the wrong values, or any but the only right one."""
        if self._is_all_but_one:
            return self.right[0].read(case) not in (None, self.right[0].value)
        return not {*self.wrong}.isdisjoint(values_of(case))

    def leave_out(self, case: Case) -> Case:
        """Return the case with a right value in place of a wrong one."""
        return self.right[0].change(case) if self.is_of(case) else case


@dataclass(frozen=True)
class UnlikeLayouts:
    """Two tensors that have to lie in memory in different ways for a failure.

    Attributes:
        one, other: their names; the layout of the first one is needed.
    """

    one: str
    other: str

    @property
    def text(self) -> str:
        """Return it for readers, after the layout of the first tensor."""
        return f"{self.other} in another layout"

    def is_of(self, case: Case) -> bool:
        """Return whether the tensors of a case have different layouts."""
        return case.layout_of(self.one) != case.layout_of(self.other)

    def leave_out(self, case: Case) -> Case:
        """Return the case with the layout of the first tensor for both."""
        own = case.layout_of(self.one)
        return CaseValue(Field.LAYOUT, self.other, own).change(case) if self.is_of(case) else case


Needed = NeededValue | UnlikeLayouts


def values_of(case: Case) -> list[CaseValue]:
    """Return the values of a case that are not plain, those first that are easiest to leave out."""
    chosen = [
        CaseValue(Field.SPECIAL, "", case.special),
        CaseValue(Field.REGIME, "", case.regime),
        *(CaseValue(Field.LAYOUT, name, layout) for name, layout in case.layouts),
        *(CaseValue(Field.SCALAR, name, value) for name, value in case.scalars),
        CaseValue(Field.DTYPE, "", case.dtype),
    ]
    return [each for each in chosen if each.value != _PLAIN.get(each.field)]


def find_needed(
    case: Case, failed: Sequence[Case], like: Sequence[Case], passes: Passes
) -> tuple[tuple[Needed, ...], Case]:
    """Return what a wrong case needs to be wrong, and the case with nothing else.

    Values that it does not need are left out one after another. In place of those that it needs,
    others are tried.

    Args:
        case: a wrong one.
        failed: all wrong ones, whose regimes and special values are tried, too.
        like: cases, whose other values can be tried.
        passes: runs a case.
    """
    needed, further = [], [each for each in like if each not in failed]
    for own in values_of(case):
        outcomes = {}
        if (plain := _PLAIN.get(own.field)) is not None:
            without = CaseValue(own.field, own.name, plain)
            outcomes[without] = passes(without.change(case))
            if outcomes[without] is False:
                case = without.change(case)
            if not outcomes[without]:
                continue
        others = dict.fromkeys(_others(own, case, failed))
        if own.field not in _OF_VALUES:
            others |= dict.fromkeys(_others(own, case, further))
        outcomes |= {other: passes(other.change(case)) for other in others}
        right = tuple(other for other, is_right in outcomes.items() if is_right)
        wrong = tuple(other for other, is_right in outcomes.items() if is_right is False)
        if right:
            needed.append(NeededValue((own, *wrong), right))
    unlike = [
        each
        for own in needed
        for each in _find_unlike(own.wrong[0], case, [*failed, *like], passes)
    ]
    return (*needed, *unlike), case


def _find_unlike(
    own: CaseValue, case: Case, like: Sequence[Case], passes: Passes
) -> Iterator[UnlikeLayouts]:
    """Yield the tensors with whose layout a case is right if it is that of the needed one."""
    if own.field is not Field.LAYOUT:
        return
    same = (value for each in like if each.shape == case.shape for value in values_of(each))
    alike = (value for value in dict.fromkeys(same) if value[::2] == own[::2])
    for other in alike:
        if case.layout_of(other.name) != own.value and passes(other.change(case)):
            yield UnlikeLayouts(own.name, other.name)


def _others(own: CaseValue, case: Case, like: Sequence[Case]) -> list[CaseValue]:
    """Return values that cases have in place of one, where they are defined.

    A layout is, for a shape that has it; a dtype, with the special values that it has, and these
    for a dtype that has them.
    """
    is_dtype = own.field is Field.DTYPE and case.special != PLAIN
    same = (
        each
        for each in like
        if (own.field is not Field.LAYOUT or each.shape == case.shape)
        and (not is_dtype or each.special == case.special)
        and (own.field not in _OF_VALUES or each.dtype == case.dtype)
    )
    others = (value for each in same for value in values_of(each) if value[:2] == own[:2])
    return [value for value in dict.fromkeys(others) if value != own][:MAX_OTHERS]


__all__ = [
    "CaseValue",
    "Field",
    "Needed",
    "NeededValue",
    "Passes",
    "UnlikeLayouts",
    "find_needed",
    "values_of",
]
