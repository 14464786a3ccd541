"""Cases run while others are compiled, and nobody has the GPU who waits for a compiler."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.worker.harness import KERNELS, Recorder, job_for, validated
from triton_magics import ops
from triton_magics.model import Case
from triton_magics.worker import turns
from triton_magics.worker.load import load_version
from triton_magics.worker.precompile import Form, forms_of
from triton_magics.worker.subject import Subject
from triton_magics.worker.turns import Turns

FIRST, SLOW, LAST = (Case(shape=shape, dtype="float32", seed=1) for shape in ((1,), (2,), (3,)))


class Compiler:
    """Has compiled what `done` says, and the rest when it is waited for."""

    def __init__(self, done: Collection[Case], log: list[str]) -> None:
        self.done, self.log = set(forms_of(done)), log

    def was_done(self, form: Form) -> bool:
        return form in self.done

    def is_done(self, form: Form, *, within_s: float) -> bool:
        return form in self.done

    def wait(self, op: object, version: object, forms: Collection[Form] | None) -> None:
        self.log.append("all compiled" if forms is None else f"{len(forms)} compiled")
        self.done |= set(forms_of([FIRST, SLOW, LAST]) if forms is None else forms)

    def end(self, *, within_s: float) -> None:
        self.log.append("ended")


def story(monkeypatch: pytest.MonkeyPatch, *done: Case) -> list[str]:
    """What happens when three cases are run, of which some are compiled."""
    log: list[str] = []
    job = job_for(KERNELS / "softmax_right.py")
    version = load_version(job.version)
    subject = Subject(ops.load("softmax"), version, job, torch.device("cuda"), "")
    monkeypatch.setattr(turns, "Ahead", lambda *args: Compiler(done, log))

    @contextmanager
    def lock() -> Iterator[None]:
        log.append("taken")
        yield
        log.append("given back")

    with Turns.beginning(subject, [FIRST, SLOW, LAST], Recorder(), lock) as ours:
        words = {FIRST: "first", SLOW: "slow", LAST: "last"}
        for case in ours.ready_first(list(words)):
            ours.wait_for(case)
            log.append(words[case])
    return log


def test_all_is_compiled_and_one_turn_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    told = story(monkeypatch, FIRST, SLOW, LAST)
    assert told == ["taken", "first", "slow", "last", "given back", "ended"]


def test_the_gpu_is_taken_when_the_first_case_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    told = story(monkeypatch)
    assert told[:3] == ["1 compiled", "taken", "first"]


def test_it_is_given_back_while_a_compiler_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    told = story(monkeypatch, FIRST)
    assert told == [
        "taken", "first", "given back", "all compiled", "taken", "slow", "last", "given back",
        "ended",
    ]  # fmt: skip


def test_what_is_compiled_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    told = story(monkeypatch, FIRST, LAST)
    assert told[:4] == ["taken", "first", "last", "given back"]
    assert told[-3:] == ["slow", "given back", "ended"]


def test_in_whichever_order_they_ran_cases_are_told_in_the_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, shapes = KERNELS / "softmax_right.py", ((1, 4), (2, 5), (3, 6))
    monkeypatch.setattr(Turns, "ready_first", lambda self, cases: cases[::-1])
    made = validated(path, shapes=shapes, dtypes=("float32",))
    assert [result.case.shape for result in made.cases] == list(shapes)
    assert made.passed
