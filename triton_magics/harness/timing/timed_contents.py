"""Contents of the inputs of timed calls, and the check of their outputs.

A version that caches answers is timed without its work. So successive calls have different
contents, some of which differ in one element, and every output is compared with the answer to its
own contents.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import outputs_of
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.judgement import PIECE_ELEMENTS, is_within, judge
from triton_magics.harness.correctness.near_inputs import change_little
from triton_magics.harness.correctness.tolerance import ScaledTolerance
from triton_magics.model import Case, NotTimedCode

Inputs = tuple[Any, ...]
Form = tuple[torch.Size, torch.dtype]
# Right answers in float64, and the allowed errors.
Answers = tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]

OTHER_FORMS = "its shapes and dtypes are not those of the reference's output"
OTHER_INPUTS = "a timed call gave the answer of an earlier one, on other inputs"


class OutputFault(NamedTuple):
    """A fault of the output of a timed call.

    Attributes:
        message: for the user.
        code: whether it is the answer for other contents.
    """

    message: str
    code: NotTimedCode


@dataclass
class DrawnContents:
    """Contents of all inputs, with the right answers once they are needed."""

    values: Inputs
    answers: Answers | None = None


class Contents(Protocol):
    """Contents of timed calls, drawn and judged in this process or in the judge's.

    Attributes:
        current: the contents of the next calls, by number; no number comes twice.
        output_forms: shapes and dtypes of the reference's outputs.
    """

    current: dict[int, DrawnContents]
    output_forms: list[Form]

    @property
    def latest(self) -> Inputs:
        """Return the contents that were drawn last."""

    def draw(self, seed: int, *, several: bool = False) -> None:
        """Draw new contents, one or three."""

    def check(
        self, values: Sequence[Any], numbers: Sequence[int], provider: str = ""
    ) -> OutputFault | None:
        """Return what is wrong with the outputs of some calls of a provider."""


class TimedContents:
    """Draws the contents of timed calls, and checks the outputs for them.

    Attributes:
        current: the contents of the next calls, by number; no number comes twice.
        output_forms: shapes and dtypes of the reference's outputs.
    """

    def __init__(self, op: operators.Op, case: Case, device: torch.device) -> None:
        self.op, self.case, self.device = op, case, device
        self.current: dict[int, DrawnContents] = {}
        self._numbers, self._changes = itertools.count(), itertools.count(case.seed)
        self._latest: DrawnContents | None = None
        self._before: DrawnContents | None = None
        self._tolerance: ScaledTolerance | None = None
        self._is_conditioned = False
        self.draw(case.seed)
        self.output_forms = forms_of(oracle.evaluate(op, self.latest)[1])

    @property
    def latest(self) -> Inputs:
        """Return the contents that were drawn last."""
        assert self._latest is not None
        return self._latest.values

    def draw(self, seed: int, *, several: bool = False) -> None:
        """Draw new contents.

        Args:
            seed: of their values.
            several: three contents: new ones, the same with a small change, and those before. Else
                one, in turn new or the last ones with a small change.
        """
        number, before = next(self._numbers), self._latest
        self._before = before
        if not several:
            near = self._change(before, seed) if number % 2 and before else None
            self._latest = near or self._new(seed)
            self.current = {number: self._latest}
            return
        before_number = next(iter(self.current), -1)
        self._latest = self._new(seed)
        self.current = {number: self._latest}
        if before:
            self.current[before_number] = before
            if near := self._change(self._latest, seed, other=before):
                self.current[next(self._numbers)] = near

    def _new(self, seed: int) -> DrawnContents:
        return DrawnContents(make_pristine(self.op, self.case.evolve(seed=seed), self.device))

    def _change(
        self, old: DrawnContents, seed: int, other: DrawnContents | None = None
    ) -> DrawnContents | None:
        """Return contents that differ in one element, or in two in turn; None without tensors."""
        draw = random.Random(f"{seed} near")  # noqa: S311 (replayed from the seed)
        swaps = next(self._changes) % 2 == 0
        values = change_little(old.values, (other or old).values, draw, swaps=swaps)
        return DrawnContents(values) if values else None

    def check(
        self, values: Sequence[Any], numbers: Sequence[int], provider: str = ""
    ) -> OutputFault | None:
        """Return what is wrong with the outputs of some calls.

        Args:
            values: what each call returned, with the inputs that the op changes.
            numbers: of the contents of each call.
            provider: name of the called implementation.
        """
        outputs = [outputs_of(value) for value in values]
        if any(forms_of(each) != self.output_forms for each in outputs):
            return OutputFault(OTHER_FORMS, NotTimedCode.WRONG_OUTPUT)
        for number in dict.fromkeys(numbers):
            own = [i for i, other in enumerate(numbers) if other == number]
            if self.op.check is not None:
                fault = self._check_by_op([values[i] for i in own], self.current[number])
            else:
                fault = self._check_group([outputs[i] for i in own], self.current[number])
            if fault:
                return fault
        return None

    def _others(self, contents: DrawnContents) -> list[DrawnContents]:
        """Return other contents, those before the last draw too."""
        drawn = (*self.current.values(), *([self._before] if self._before else []))
        return [other for other in drawn if other is not contents]

    def _check_by_op(self, values: Sequence[Any], contents: DrawnContents) -> OutputFault | None:
        """Check with the op's own function; outputs that are equal are checked once."""
        assert self.op.check is not None
        distinct = values[:1] if _all_equal(values) else values
        for value in distinct:
            if message := self.op.check(contents.values, value, None):
                others = self._others(contents)
                is_other = any(self.op.check(c.values, value, None) is None for c in others)
                return _fault(message, is_other=is_other)
        return None

    def _check_group(
        self, group: list[tuple[torch.Tensor, ...]], contents: DrawnContents
    ) -> OutputFault | None:
        """Check outputs for the same contents."""
        if _are_within(group, *self._answers(contents)):
            return None
        for outputs in group:
            if message := self._error(outputs, contents):
                is_other = any(self._error(outputs, c) is None for c in self._others(contents))
                return _fault(message, is_other=is_other)
        return None

    def _error(self, outputs: tuple[torch.Tensor, ...], contents: DrawnContents) -> str | None:
        """Return how far the outputs are off; None if they are right."""
        error = _excess_error(outputs, *self._answers(contents))
        if error and not self._is_conditioned:
            self._tolerance = self._scaled_tolerance(contents, conditioning=oracle.Conditioning.ALL)
            self._is_conditioned = True
            for each in (contents, *self._others(contents)):
                each.answers = None
            error = _excess_error(outputs, *self._answers(contents))
        return error

    def _answers(self, contents: DrawnContents) -> Answers:
        """Return the answers for these contents and the allowed errors."""
        if contents.answers is None:
            if self._tolerance is None:
                self._tolerance = self._scaled_tolerance(
                    contents, conditioning=oracle.Conditioning.NONE
                )
            references = oracle.evaluate(self.op, oracle.upcast(contents.values))[1]
            answers = oracle.double_floats(references)
            contents.answers = answers, self._tolerance.allowed_errors(answers)
        return contents.answers

    def _scaled_tolerance(
        self, contents: DrawnContents, *, conditioning: oracle.Conditioning
    ) -> ScaledTolerance:
        """Return the tolerance of all contents.

        Args:
            contents: those that it is derived from.
            conditioning: include the condition of the inputs; needed only when an output is
                wrong without it.
        """
        expected = oracle.compute_expected(
            self.op,
            contents.values,
            self.case,
            None,
            None,
            conditioning=conditioning,
            diagnose=False,
        )
        return ScaledTolerance.of(
            expected.values,
            expected.allowed,
            expected.tolerance.rtol,
            by_row=self.op.op_class != "elementwise",
        )


def void_message(provider: str, size: str, fault: OutputFault) -> str:
    """Return why the time of a provider at a size does not count, in one line."""
    if fault.code is NotTimedCode.CACHED:
        return f"{provider} caches answers: at {size} {fault.message}"
    return f"{provider} gave a wrong answer in a timed run at {size}: {fault.message}"


def forms_of(outputs: tuple[Any, ...]) -> list[Form]:
    """Return the shape and dtype of each output that is a plain tensor."""
    return [(o.shape, o.dtype) for o in outputs if type(o) is torch.Tensor]


def _fault(message: str, *, is_other: bool) -> OutputFault:
    if is_other:
        return OutputFault(OTHER_INPUTS, NotTimedCode.CACHED)
    return OutputFault(message, NotTimedCode.WRONG_OUTPUT)


def _all_equal(values: Sequence[Any]) -> bool:
    """Return whether all outputs equal the first one; NaN equals nothing."""
    if len(values) == 1:
        return True
    columns = zip(*(outputs_of(v) for v in values), strict=True)
    stacked = [torch.stack(column) for column in columns]
    return all(bool((s == s[:1]).all()) for s in stacked)


def _are_within(
    group: list[tuple[torch.Tensor, ...]],
    answers: tuple[torch.Tensor, ...],
    allowed: tuple[torch.Tensor, ...],
) -> bool:
    """Return whether all outputs are within the allowed error; NaN and infinity are not."""
    for column, answer, error in zip(zip(*group, strict=True), answers, allowed, strict=True):
        if len(column) == 1 or len(column) * answer.numel() > 4 * PIECE_ELEMENTS:
            if not all(is_within(output, answer, error) for output in column):
                return False
        elif not bool(_is_right(torch.stack(column), answer, error).all()):
            return False
    return True


def _is_right(stacked: torch.Tensor, answer: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
    if not stacked.dtype.is_floating_point:
        return stacked == answer
    return (stacked.double() - answer).abs_() <= error


def _excess_error(
    outputs: tuple[Any, ...], answers: tuple[torch.Tensor, ...], allowed: tuple[torch.Tensor, ...]
) -> str | None:
    for output, answer, error in zip(outputs, answers, allowed, strict=True):
        if is_within(output, answer, error):
            continue
        judged = judge(output, answer, error)
        if not judged.is_correct:
            return f"{judged.error_share:.3g} times the allowed error"
    return None
