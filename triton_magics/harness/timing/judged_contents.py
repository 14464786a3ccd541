"""Contents of timed calls that the judge draws, and whose outputs it judges.

The subject process times; it asks the judge for the contents of each round and hands the outputs of
each run over, in shared memory. The judge compares them with answers from its own copies.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from triton_magics import exception_text, operators
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness.call_record import outputs_of
from triton_magics.harness.load import UserFault, load_op
from triton_magics.harness.process import subject_server
from triton_magics.harness.process.device import this_device
from triton_magics.harness.process.shared_memory import SharedMemory
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.harness.timing.timed_contents import (
    OTHER_FORMS,
    Contents,
    DrawnContents,
    Form,
    Inputs,
    OutputFault,
    TimedContents,
    forms_of,
)
from triton_magics.model import Case, NotTimedCode, Value

FIRST_ROOM = 3  # outputs, as many as the calls of a warm-up


class ContentsQuestion(Value):
    """A question of the subject process.

    Attributes:
        kind: open a size, draw contents, make room for more outputs, or check outputs.
        size: name or shape of the size to open.
        several: draw three contents, not one.
        n_outputs: the calls whose outputs need room.
        provider: whose outputs are checked.
        numbers: of the contents of each checked output.
        is_tensor: the calls returned one tensor each, not a tuple.
    """

    kind: Literal["open", "draw", "room", "check"]
    size: str = ""
    several: bool = False
    n_outputs: int = 0
    provider: str = ""
    numbers: tuple[int, ...] = ()
    is_tensor: bool = False


@dataclass(frozen=True)
class JudgesAnswer:
    """The judge's answer.

    Attributes:
        contents: by number, the latest first; none if they did not change.
        forms: of the reference's outputs.
        room: memory for outputs; the calls are its first dimension.
        fault: of the checked outputs.
        error: why there is no answer.
        is_users: the user can mend the error.
        out_of_memory: the error is that.
    """

    contents: tuple[tuple[int, Inputs], ...] = ()
    forms: tuple[Form, ...] = ()
    room: tuple[torch.Tensor, ...] = ()
    fault: OutputFault | None = None
    error: str | None = None
    is_users: bool = False
    out_of_memory: bool = False


# ------------------------------------------------------------------------------------- judge


class ContentsJudge:
    """Answers the questions of one benchmark.

    Attributes:
        n_right: right outputs by provider and size.
        passed_s: time between an answer and the next check, by provider and size, seconds.
    """

    def __init__(self, job: BenchJob, memory: SharedMemory | None) -> None:
        """Prepare for a benchmark; without shared memory every question is declined."""
        self.n_right: Counter[tuple[str, str]] = Counter()
        self.passed_s: dict[tuple[str, str], float] = defaultdict(float)
        self.memory = memory
        self._job = job
        self._size = ""
        self._contents: TimedContents | None = None
        self._room: tuple[torch.Tensor, ...] = ()
        self._n_outputs = FIRST_ROOM
        self._draw = random.Random(f"{job.seed} judge")  # noqa: S311 (replayed from the seed)
        self._answered_s = time.monotonic()

    def answer(self, message: bytes) -> JudgesAnswer | None:
        """Return the answer to a question, None if there is no shared memory."""
        received_s = time.monotonic()
        if self.memory is None:
            return None
        try:
            with torch.no_grad():
                question = ContentsQuestion.model_validate_json(message)
                return self._answer(question, self.memory, received_s - self._answered_s)
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            return JudgesAnswer(error=str(error), out_of_memory=True)
        except BaseException as error:  # noqa: BLE001 (no question goes unanswered)
            is_users = exception_text.is_a(error, UserFault)
            return JudgesAnswer(error=exception_text.message(error), is_users=is_users)
        finally:
            self._answered_s = time.monotonic()

    def _answer(
        self, question: ContentsQuestion, memory: SharedMemory, passed_s: float
    ) -> JudgesAnswer:
        if question.kind == "open":
            self._open(question.size)
            return self._hand_over(memory)
        assert self._contents is not None
        if question.kind == "check":
            return JudgesAnswer(fault=self._check(question, self._contents, passed_s))
        if question.kind == "draw":
            self._contents.draw(self._draw.getrandbits(31), several=question.several)
        self._n_outputs = max(self._n_outputs, question.n_outputs)
        return self._hand_over(memory)

    def _open(self, size: str) -> None:
        op, job = load_op(self._job.op), self._job
        case = timing_case(op, size, job.dtype, self._draw.getrandbits(31))
        self._contents = TimedContents(op, case, this_device())
        self._size, self._n_outputs = size, FIRST_ROOM

    def _hand_over(self, memory: SharedMemory) -> JudgesAnswer:
        """Return the contents, which are copied into shared memory, and room for outputs."""
        assert self._contents is not None
        self._room = ()
        memory.reset()
        self._room = tuple(self._allocate(memory, *form) for form in self._contents.output_forms)
        return JudgesAnswer(
            contents=tuple((n, c.values) for n, c in self._contents.current.items()),
            forms=tuple(self._contents.output_forms),
            room=self._room,
        )

    def _allocate(
        self, memory: SharedMemory, shape: torch.Size, dtype: torch.dtype
    ) -> torch.Tensor:
        n_bytes = self._n_outputs * shape.numel() * dtype.itemsize
        room = memory.allocate(n_bytes, this_device())[:n_bytes]
        return room.view(dtype).view(self._n_outputs, *shape)

    def _check(
        self, question: ContentsQuestion, contents: TimedContents, passed_s: float
    ) -> OutputFault | None:
        """Check the outputs in the room; count those that are right."""
        n, key = len(question.numbers), (question.provider, self._size)
        self.passed_s[key] += passed_s
        if n > self._n_outputs or not set(question.numbers) <= set(contents.current):
            return OutputFault("its outputs were not handed over", NotTimedCode.WRONG_OUTPUT)
        rows = [tuple(memory[i] for memory in self._room) for i in range(n)]
        values = [row[0] if question.is_tensor and len(row) == 1 else row for row in rows]
        fault = contents.check(values, question.numbers)
        if fault is None:
            self.n_right[key] += n
        return fault


# ------------------------------------------------------------------------- the subject process


class JudgedContents:
    """Contents of timed calls in the subject process: the judge draws and judges.

    Attributes:
        current: the contents of the next calls, by number.
        output_forms: shapes and dtypes of the reference's outputs.
    """

    def __init__(self, answer: JudgesAnswer) -> None:
        self._take(answer)

    @property
    def latest(self) -> Inputs:
        """Return the contents that were drawn last."""
        return next(iter(self.current.values())).values

    def draw(self, seed: int, *, several: bool = False) -> None:
        """Let the judge draw new contents, by a seed of its own."""
        self._take(_ask(ContentsQuestion(kind="draw", several=several)))

    def _take(self, answer: JudgesAnswer) -> None:
        self.current: dict[int, DrawnContents] = {
            number: DrawnContents(values) for number, values in answer.contents
        }
        self.output_forms: list[Form] = list(answer.forms)
        self._room = answer.room

    def check(
        self, values: Sequence[Any], numbers: Sequence[int], provider: str = ""
    ) -> OutputFault | None:
        """Hand the outputs over to the judge; return what is wrong with them."""
        outputs = [outputs_of(value) for value in values]
        if any(forms_of(each) != self.output_forms for each in outputs):
            return OutputFault(OTHER_FORMS, NotTimedCode.WRONG_OUTPUT)
        if self._room and len(outputs) > len(self._room[0]):
            self._take(_ask(ContentsQuestion(kind="room", n_outputs=len(outputs))))
        for number, each in enumerate(outputs):
            for memory, output in zip(self._room, each, strict=True):
                memory[number].copy_(output)
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        question = ContentsQuestion(
            kind="check",
            provider=provider,
            numbers=tuple(numbers),
            is_tensor=isinstance(values[0], torch.Tensor),
        )
        return _ask(question).fault


def open_contents(op: operators.Op, case: Case, size: str, device: torch.device) -> Contents:
    """Return the contents of a size, judged by the judge if this process has one."""
    if subject_server.has_judge():
        answer = subject_server.ask(ContentsQuestion(kind="open", size=size))
        if answer is not None:
            return JudgedContents(_raise_error(answer))
    return TimedContents(op, case, device)


def _ask(question: ContentsQuestion) -> JudgesAnswer:
    return _raise_error(subject_server.ask(question))


def _raise_error(answer: JudgesAnswer) -> JudgesAnswer:
    """Return the answer, or raise the error that it holds.

    Raises:
        torch.OutOfMemoryError, UserFault, RuntimeError: the judge had it.
    """
    if answer.out_of_memory:
        raise torch.OutOfMemoryError(answer.error)
    if answer.error is not None:
        raise UserFault(answer.error) if answer.is_users else RuntimeError(answer.error)
    return answer


__all__ = ["ContentsJudge", "JudgedContents", "open_contents"]
