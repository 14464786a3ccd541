"""The range of an input's elements that makes a version wrong: small ones, large ones, or a sign.

A subnormal number is decoded without its rule, an approximation ends at 4, a mask takes the sign
bit, an index has 16 bits. Such a version is right once the elements of the range are gone, and
wrong with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.further_calls import passes
from triton_magics.harness.correctness.hypotheses import fresh
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, Cause, CauseCode

INTEGERS = (torch.int32, torch.int64)
MIN_ELEMENTS = 16  # of a tensor of floats
MOST = 0.5  # of the elements may lie in the range: without most of them any version is right
LEAST_OF_A_SIGN = 0.1  # without the other sign there is nothing to compare
STEPS = 6  # that narrow the limit down
LARGEST = (65_535, 32_767, 255, 127)  # of the integers of 8 and 16 bits
N_CONFIRMED, MOST_INPUTS = 2, 8  # other inputs that are wrong, of so many that are tried


@dataclass(frozen=True)
class _Range:
    """A range of numbers by a limit; for a sign there is no limit.

    Attributes:
        text: completes "right where"; `{name}` is the input and `{limit}` the limit.
        has_limit: it begins or ends at a size of numbers.
        is_small: it ends there.
        leave_out: (x, limit) -> x without numbers of the range.
        keep_only: (x, limit) -> x with numbers of the range alone.
    """

    text: str
    has_limit: bool
    is_small: bool
    leave_out: Callable[[torch.Tensor, float], torch.Tensor]
    keep_only: Callable[[torch.Tensor, float], torch.Tensor]


def _fill_from(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """Return x in which all elements that are not chosen repeat the chosen ones in turn."""
    flat, own = x.flatten().clone(), x[chosen]
    others = (~chosen).flatten().nonzero().flatten()
    if len(own):
        flat[others] = own[torch.arange(len(others), device=x.device) % len(own)]
    return flat.reshape(x.shape)


_RANGES = (
    _Range(
        "no element of {name} is under {limit} in size, wrong with such", True, True,
        lambda x, limit: x.abs().clamp(min=limit).copysign(x),
        lambda x, limit: _fill_from(x, x.abs() < limit),
    ),
    _Range(
        "no element of {name} is over {limit} in size, wrong with such", True, False,
        lambda x, limit: x.clamp(-limit, limit),
        lambda x, limit: _fill_from(x, x.abs() > limit),
    ),
    _Range(
        "no element of {name} is negative, wrong with such", False, False,
        lambda x, limit: x.abs(), lambda x, limit: -x.abs(),
    ),
    _Range(
        "no element of {name} is positive, wrong with such", False, False,
        lambda x, limit: -x.abs(), lambda x, limit: x.abs(),
    ),
)  # fmt: skip
_OF_INTEGERS = _Range(
    "no element of {name} is over {limit}, wrong with such", True, False,
    lambda x, limit: x.clamp(max=limit), lambda x, limit: _fill_from(x, x > limit),
)  # fmt: skip


def find_range(subject: Subject, case: Case) -> Cause | None:
    """Return the range of an input's elements without which the version is right; None: no range.

    Two other inputs that are wrong have to be right without the range, and wrong with nothing else.

    Args:
        subject: the version.
        case: on which it is wrong.
    """
    inputs = subject.make_inputs(case).pristine
    names = subject.op.input_names(len(inputs))
    for place, (name, x) in enumerate(zip(names, inputs, strict=True)):
        is_usable = is_floating(x) and x.numel() >= MIN_ELEMENTS
        if not is_usable or place in subject.op.structured or not bool(x.float().isfinite().all()):
            continue
        for each in _RANGES:
            tried = _Tried(subject, case, place, each)
            limit = tried.find_limit(x)
            if limit is not None and tried.is_confirmed(limit):
                return _cause(each, name, f"{limit:.2g}", CauseCode.REACH)
    return None


def _cause(wrong: _Range, name: str, limit: str, code: CauseCode) -> Cause:
    text = wrong.text.format(name=name, limit=limit)
    return Cause(code=code, tensor=name, evidence=f"right where {text}")


def find_width(subject: Subject, case: Case) -> Cause | None:
    """Return too few bits as the cause, if just the integers that need more make the output wrong.

    Args:
        subject: the version.
        case: on which it is wrong.
    """
    inputs = subject.make_inputs(case).pristine
    for place, (name, x) in enumerate(
        zip(subject.op.input_names(len(inputs)), inputs, strict=True)
    ):
        if not isinstance(x, torch.Tensor) or x.dtype not in INTEGERS or not x.numel():
            continue
        tried, largest = _Tried(subject, case, place, _OF_INTEGERS), int(x.max())
        possible = (n for n in LARGEST if n < largest and tried.is_wrong_just_over(n, largest))
        if width := next(filter(tried.is_confirmed, possible), None):
            return _cause(_OF_INTEGERS, name, f"{width:,}", CauseCode.INT_OVERFLOW)
    return None


@dataclass(frozen=True)
class _Tried:
    """Calls of a version without a range of an input's elements.

    Attributes:
        place: of the input.
    """

    subject: Subject
    case: Case
    place: int
    range: _Range

    def find_limit(self, x: torch.Tensor) -> float | None:
        """Return the limit up to which most elements may stay; None if that is not enough."""
        if not self.range.has_limit:
            share = float((x.float() < 0).float().mean())
            has_both_signs = LEAST_OF_A_SIGN <= share <= 1 - LEAST_OF_A_SIGN
            return 0.0 if has_both_signs and self._is_right(self.case, 0.0) else None
        sizes = x.float().abs().flatten().sort(descending=not self.range.is_small).values
        wrong, right = 0, int(MOST * (len(sizes) - 1))
        if right < 1 or not self._is_right(self.case, float(sizes[right])):
            return None
        for _ in range(STEPS):
            middle = (wrong + right) // 2
            if middle == wrong:
                break
            if self._is_right(self.case, float(sizes[middle])):
                right = middle
            else:
                wrong = middle
        return float(sizes[right])

    def is_confirmed(self, limit: float) -> bool:
        """Return whether other inputs that are wrong are right without the range, and wrong alone.

        Inputs that are right by chance tell nothing.
        """
        n_confirmed, case = 0, self.case
        for _ in range(MOST_INPUTS):
            case = fresh(case)
            if self._is_right(case, limit, lambda x, _: x):
                continue
            is_right_without = self._is_right(case, limit)
            if not is_right_without or self._is_right(case, limit, self.range.keep_only):
                return False
            n_confirmed += 1
            if n_confirmed == N_CONFIRMED:
                return True
        return False

    def is_wrong_just_over(self, limit: int, largest: int) -> bool:
        """Return whether integers that are little over a limit are wrong alone.

        Those that are wrong far over it may be those of a last block.
        """

        def just_over(x: torch.Tensor, limit: float) -> torch.Tensor:
            return (x % max(limit // 8, 1) + limit + 1).clamp(max=largest)

        return not self._is_right(self.case, limit, just_over)

    def _is_right(
        self,
        case: Case,
        limit: float,
        change: Callable[[torch.Tensor, float], torch.Tensor] | None = None,
    ) -> bool:
        """Return whether the version is right on a case with this change, or without the range."""
        values: list[Any] = [*self.subject.make_inputs(case).pristine]
        x = values[self.place]
        wide = x.double() if x.dtype in INTEGERS else x.float()
        values[self.place] = (change or self.range.leave_out)(wide, limit).to(x.dtype)
        try:
            return passes(self.subject, case, tuple(values))
        except (VersionRaised, UserFault):
            return False


__all__ = ["find_range", "find_width"]
