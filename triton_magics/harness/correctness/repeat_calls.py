"""Checks that call a version again: state between calls, kept answers, determinism.

The output of a call follows from its inputs alone. So a version is called on changing contents that
differ in little, in the case's own tensors and in new ones; every output is kept, and compared with
the oracle as it was when its call returned, and with itself after the last call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import (
    CallRecord,
    CallSeries,
    SeriesRecord,
    VersionRaised,
)
from triton_magics.harness.correctness.case_inputs import CaseInputs, is_bitwise_equal
from triton_magics.harness.correctness.cause_experiments import explain_contents
from triton_magics.harness.correctness.comparison import (
    CaseOracle,
    compare_outputs,
    noted_if_gpu_is_needed,
    on_cpu,
)
from triton_magics.harness.correctness.computed_by import (
    check_launches,
    check_other_code,
    copy_outputs,
)
from triton_magics.harness.correctness.default_dtype import needs_default_dtype
from triton_magics.harness.correctness.near_inputs import (
    ALL_NAN,
    CONSTANTS,
    constant_contents,
    near_contents,
    switched_case,
)
from triton_magics.harness.correctness.output_checks import (
    REUSED_MEMORY,
    check_form,
    failed_case,
)
from triton_magics.harness.correctness.output_forms import rebuild_value
from triton_magics.harness.correctness.series_oracle import (
    ExpectedAhead,
    all_to_device,
    equal_rows,
    right_rows,
)
from triton_magics.harness.correctness.series_plan import (
    FEW_CALLS,
    MANY_CONTENTS,
    SERIES_S,
    count_calls,
    plan_turns,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case, CaseResult, CaseStatus, Cause, CauseCode

MAX_REPEAT_ELEMENTS = 300_000
MAX_REPEAT_PROGRAMS = 64  # about a millisecond each in the interpreter
MAX_REPEAT_FLOPS = 2**24  # a program of a product loops: 2^25 take the interpreter half a second
CHECKED_BY_OP = 6  # outputs of one content that an op's own check looks at
STALE = "the inputs had changed, but call {} gave the output of earlier ones: a result is cached"
LATER = "call {}, of {} in a row, was wrong: {}"
OTHER_CONTENTS = "with other contents"
ALL_EQUAL = "with inputs whose elements are all {:g}"


def check_repeat_calls(
    subject: Subject,
    case: Case,
    inputs: CaseInputs,
    *,
    call: CallRecord,
    torch_outputs: oracle.TorchOutputs,
    result: CaseResult,
) -> CaseResult:
    """Check a series of calls, and who computes, on small cases only.

    Every call must be finished when it returns, and correct; its bits may differ.
    """
    elements = max(inputs.largest, *(t.numel() for t in call.outputs))
    if case.is_empty or not case.has_plain_values or elements > MAX_REPEAT_ELEMENTS:
        return result
    if subject.is_interpreted and (case.extent or _is_slow(subject, inputs, call)):
        return check_launches(subject, case, inputs, call) or result
    first = copy_outputs(call)
    call = replace(call, outputs=first)
    calls = CallsInARow.run(subject, case, inputs, call=call, torch_outputs=torch_outputs)
    if inputs.staged is None:
        failed = calls.check()
    else:
        there, calls, call = calls, calls.on_cpu(), on_cpu(call)
        are_right = False
        with noted_if_gpu_is_needed(subject):
            are_right = calls.are_right()
        failed = None if are_right else there.beside_arguments().check()
    failed = failed or check_other_code(subject, case, inputs, call, first=first)
    failed = failed or check_launches(subject, case, inputs, call)
    if failed:
        return failed
    needs = needs_default_dtype(subject, case, inputs, call, torch_outputs, first=first)
    return result.evolve(deterministic=calls.is_deterministic, needs_default_dtype=needs)


def _is_slow(subject: Subject, inputs: CaseInputs, call: CallRecord) -> bool:
    """Return whether a call takes the interpreter so long that it is not repeated."""
    flops = subject.op.flops(*inputs.pristine) if subject.op.flops else 0
    return call.launches.programs > MAX_REPEAT_PROGRAMS or flops > MAX_REPEAT_FLOPS


@dataclass(frozen=True)
class CallsInARow:
    """A series of calls that has run, and what is needed to judge it.

    Attributes:
        inputs: of the case.
        call: an earlier call on them, which was right.
        torch_outputs: of the case.
        constant: names of the values of the last contents, which are constant.
    """

    subject: Subject
    case: Case
    inputs: CaseInputs
    call: CallRecord
    torch_outputs: oracle.TorchOutputs
    series: CallSeries
    record: SeriesRecord
    ahead: ExpectedAhead
    constant: tuple[str, ...] = ()

    @classmethod
    def run(
        cls,
        subject: Subject,
        case: Case,
        inputs: CaseInputs,
        *,
        call: CallRecord,
        torch_outputs: oracle.TorchOutputs,
    ) -> CallsInARow:
        """Call the version a few times, or many times if the plan chose this case for it."""
        planned = subject.long_series.get(case, 0)
        n = count_calls(subject, call, planned) if planned else FEW_CALLS
        n_contents = MANY_CONTENTS if planned else 1
        other = None if planned else switched_case(subject.op, case)
        switched = other if other and subject.has_kernels(other) else None
        near = near_contents(subject.op, case, inputs.pristine, n_contents, switched=switched)
        constant = constant_contents(subject.op, inputs.pristine, case.dtype) if planned else {}
        contents = (inputs.pristine, *near, *constant.values())
        series = CallSeries(
            arguments=inputs.arguments,
            contents=contents if inputs.staged is None else all_to_device(contents, subject.device),
            turns=plan_turns(n, len(contents), len(constant), case.seed),
            at_return=tuple(subject.allocate_many(n, t) for t in call.outputs),
            at_end=tuple(subject.allocate_many(n, t) for t in call.outputs),
            returns_tensor=torch_outputs.returns_tensor,
            mutates=subject.op.mutates,
            watches=not planned,
            limit_s=SERIES_S if subject.is_interpreted else None,
        )
        judged = len(contents) - (ALL_NAN in constant)  # which are the last ones
        ahead = ExpectedAhead(subject, case, contents[:judged], torch_errors=inputs.staged is None)
        record = subject.calls.call_series(series, ahead.prepare)
        names = tuple(constant)
        return cls(subject, case, inputs, call, torch_outputs, series, record, ahead, names)

    def on_cpu(self) -> CallsInARow:
        """Return the series with copies of its outputs on the CPU, where they are judged."""
        n = self.record.n_calls
        at_return, at_end = (
            tuple(memory[:n].cpu() for memory in memories)
            for memories in (self.series.at_return, self.series.at_end)
        )
        series = replace(self.series, at_return=at_return, at_end=at_end)
        return replace(self, series=series, call=on_cpu(self.call))

    def beside_arguments(self) -> CallsInARow:
        """Return the series to be judged on the device of the arguments."""
        subject, inputs = self.subject, self.inputs.beside_arguments
        judged = self.series.contents[: len(self.ahead.contents)]
        ahead = ExpectedAhead(subject, self.case, judged)
        torch_outputs = oracle.compute_torch_outputs(subject.op, inputs.pristine)
        return replace(self, inputs=inputs, ahead=ahead, torch_outputs=torch_outputs)

    def are_right(self) -> bool:
        """Return whether `check` finds nothing, without an explanation of what it would find."""
        record = self.record
        facts = (
            record.failure, record.has_other_form, record.late_work, record.shares_input,
            record.reuses_memory, record.overwritten, record.keeps,
        )  # fmt: skip
        if any(facts):
            return False
        contents = range(len(self.ahead.contents))
        return not any(map(self._wrong, contents)) and not self._changes_earlier_outputs()

    def check(self) -> CaseResult | None:
        """Return the failed case if a call was wrong, unfinished, or changed an earlier output."""
        if (
            failed := self._check_values()
            or self._check_earlier_outputs()
            or self._check_late_work()
        ):
            return failed
        if self.record.failure and not self._is_refused_nan:
            raise VersionRaised(self.record.failure, self.call.launches)
        return self._check_form() or self._check_settings()

    @property
    def _is_refused_nan(self) -> bool:
        """Return whether the series ended as the version raised for NaN, which is its right."""
        return self.series.turns[self.record.n_calls].content >= len(self.ahead.contents)

    @property
    def is_deterministic(self) -> bool:
        """Return whether all calls on the first contents gave the bits of the earlier one."""
        return self._repeats_first

    # ------------------------------------------------------------------------------- values

    def _check_values(self) -> CaseResult | None:
        """Judge the outputs of all calls; explain the first wrong one."""
        contents = range(len(self.ahead.contents))
        wrong = sorted(number for content in contents for number in self._wrong(content))
        return self._explain(wrong[0], wrong) if wrong else None

    def _numbers(self, content: int) -> list[int]:
        """Return the calls on these contents."""
        turns = self.series.turns[: self.record.n_calls]
        return [number for number, turn in enumerate(turns) if turn.content == content]

    def _wrong(self, content: int) -> list[int]:
        """Return the calls on these contents whose outputs are wrong."""
        numbers = self._numbers(content)
        if not numbers:
            return []
        if self.subject.op.check is not None:
            return [n for n in self._distinct(numbers) if self._own_check(n)]
        if content == 0 and self._repeats_first:
            return []
        stacked = tuple(memory[numbers] for memory in self.series.at_return)
        right = torch.zeros(len(numbers), dtype=torch.bool)
        for expected in self.ahead.iter_expected(content):
            triples = zip(stacked, expected.values, expected.allowed, strict=True)
            right = torch.stack([right_rows(*each) for each in triples]).all(0).cpu()
            if bool(right.all()):
                break
        return [n for n, is_right in zip(numbers, right.tolist(), strict=True) if not is_right]

    @cached_property
    def _repeats_first(self) -> bool:
        """Return whether the calls on the first contents gave the bits of the earlier one."""
        numbers = self._numbers(0)
        pairs = zip(self.series.at_return, self.call.outputs, strict=True)
        return all(bool(equal_rows(memory[numbers], first[None]).all()) for memory, first in pairs)

    def _distinct(self, numbers: list[int]) -> list[int]:
        """Return a few calls with different outputs, the last ones first."""
        chosen: list[int] = []
        for number in reversed(numbers):
            if len(chosen) < CHECKED_BY_OP and not any(self._are_equal(number, c) for c in chosen):
                chosen.append(number)
        return chosen

    def _are_equal(self, one: int, other: int) -> bool:
        return all(is_bitwise_equal(m[one], m[other]) for m in self.series.at_return)

    def _own_check(self, number: int) -> str | None:
        """Return the message of the op's own check of a call."""
        check = self.subject.op.check
        contents = self.series.contents[self.series.turns[number].content]
        return check(contents, self._value(number), None) if check else None

    def _value(self, number: int) -> Any:
        outputs = self._outputs(number)[: len(self.torch_outputs.returned)]
        return outputs[0] if self.torch_outputs.returns_tensor else outputs

    def _outputs(self, number: int) -> tuple[torch.Tensor, ...]:
        return tuple(memory[number] for memory in self.series.at_return)

    # --------------------------------------------------------------------------- explanation

    def _explain(self, number: int, wrong: list[int]) -> CaseResult | None:
        """Return the failed case of a wrong call; None if it is right with conditioning.

        It is stale if it gave the output of other contents, where new tensors get the right one.
        State is kept between calls if another call on the same contents was right. Else its values
        are wrong on these contents.
        """
        content = self.series.turns[number].content
        judged = self._judge(number)
        if not judged.status.failed:
            return None
        if content and self._repeats_other(number) and self._is_right_on_new(content):
            return failed_case(self.case, CaseStatus.STALE, STALE.format(number + 1))
        if content == 0 or set(self._numbers(content)) - set(wrong):
            return self._with_state(judged, number)
        pristine, outputs = self.series.contents[content], self._outputs(number)
        case = self._case_of(content)
        with self.subject.explanation(case):
            judged = explain_contents(self.subject, case, pristine, outputs, judged)
        value = CONSTANTS.get(case.special)
        where = OTHER_CONTENTS if value is None else ALL_EQUAL.format(value)
        return judged.evolve(reason=judged.reason or where)

    def _case_of(self, content: int) -> Case:
        """Return the case of these contents: with their special values if they are constant."""
        place = content - len(self.series.contents) + len(self.constant)
        return self.case.evolve(special=self.constant[place]) if place >= 0 else self.case

    def _is_right_on_new(self, content: int) -> bool:
        """Return whether a call is right on new tensors, with the scalars of these contents."""
        pristine = self.series.contents[content]
        new = tuple(x * 0.5 if is_floating(x) else x for x in pristine)
        own = oracle.own_inputs(self.subject.op, new)
        torch_outputs = oracle.compute_torch_outputs(self.subject.op, new)
        call = self.subject.call(own, torch_outputs.outputs)
        if self.subject.op.check:
            return self.subject.op.check(new, call.value, None) is None
        inputs = replace(self.inputs, pristine=new)
        judged = compare_outputs(CaseOracle(self.subject, self.case, inputs, torch_outputs), call)
        return not judged.status.failed

    def _repeats_other(self, number: int) -> bool:
        """Return whether a call gave the bits that an earlier one gave for other contents."""
        own = self.series.turns[number].content
        earlier = [n for n in range(number) if self.series.turns[n].content != own]
        outputs = self._outputs(number)
        if all(map(is_bitwise_equal, self.call.outputs, outputs)):
            return True
        return any(self._are_equal(number, other) for other in earlier)

    def _judge(self, number: int) -> CaseResult:
        """Return the result of one call, with its error."""
        content = self.series.turns[number].content
        pristine = self.series.contents[content]
        if message := self._own_check(number):
            return failed_case(self.case, CaseStatus.WRONG_VALUES, message)
        inputs = replace(self.inputs, pristine=pristine)
        call = replace(self.call, value=self._value(number), outputs=self._outputs(number))
        torch_outputs = oracle.compute_torch_outputs(self.subject.op, pristine)
        case = self._case_of(content)
        result = compare_outputs(CaseOracle(self.subject, case, inputs, torch_outputs), call)
        return result.evolve(case=self.case)

    def _with_state(self, result: CaseResult, number: int) -> CaseResult:
        """Return the wrong result of a later call; in the interpreter only state can differ.

        A call on new tensors may also read what lies outside of them, so it has no cause.
        """
        interpreted = self.subject.is_interpreted
        code = CauseCode.STALE_STATE if interpreted else CauseCode.NOT_DETERMINISTIC
        cause = None if interpreted and self._is_first_renewed(number) else Cause(code=code)
        mismatch = result.mismatch and result.mismatch.evolve(cause=cause)
        detail = result.reason or "another call on the same inputs was right"
        reason = LATER.format(number + 1, len(self.series.turns), detail)
        return result.evolve(deterministic=False, mismatch=mismatch, reason=reason)

    def _is_first_renewed(self, number: int) -> bool:
        """Return whether a call is on new tensors, and no earlier one on the same contents was."""
        turns = self.series.turns[: number + 1]
        own = [turn for turn in turns if turn.content == turns[-1].content]
        return own[-1].is_renewed and not any(turn.is_renewed for turn in own[:-1])

    def _check_earlier_outputs(self) -> CaseResult | None:
        """Check that no call has changed an output that an earlier one returned."""
        if self._changes_earlier_outputs() or self.record.reuses_memory:
            return failed_case(self.case, CaseStatus.ALIASED, REUSED_MEMORY)
        if not self.record.shares_input:
            return None
        last = self.record.n_calls - 1
        sharing = replace(self.call, value=self._value(last), shared_inputs=(0,))
        return self._check_call(last, sharing)

    def _changes_earlier_outputs(self) -> bool:
        n = self.record.n_calls
        pairs = zip(self.series.at_return, self.series.at_end, strict=True)
        return not all(bool(equal_rows(x[:n], y[:n]).all()) for x, y in pairs)

    def _check_late_work(self) -> CaseResult | None:
        """Check that no call left work behind."""
        if message := self.record.late_work:
            return failed_case(self.case, CaseStatus.UNFINISHED_WORK, message)
        return None

    def _check_settings(self) -> CaseResult | None:
        """Check that a call leaves the settings of the process to its caller."""
        if message := self.record.overwritten:
            return failed_case(self.case, CaseStatus.SIDE_EFFECT, message)
        if kind := self.record.keeps:
            message = f"the version keeps {kind} of every call: memory grows with each of them"
            return failed_case(self.case, CaseStatus.SIDE_EFFECT, message)
        return None

    def _check_form(self) -> CaseResult | None:
        """Check the type, count, shape and dtype of what the last call returned."""
        if not self.record.has_other_form:
            return None
        value = rebuild_value(self.record.container, self.record.forms)
        return self._check_call(self.record.n_calls, replace(self.call, value=value))

    def _check_call(self, number: int, call: CallRecord) -> CaseResult | None:
        """Check the form of one call's return value, and that it is no input."""
        mutates = self.subject.op.mutates
        failed = check_form(self.case, call, self.torch_outputs, mutates=mutates)
        return failed and self._with_state(failed, number)
