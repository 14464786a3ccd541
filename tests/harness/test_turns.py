"""Cases run while others are compiled, and nobody has the GPU who waits for a compiler."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext

import pytest
import torch

from tests.harness.kit import KERNELS, Recorder, job_for, run_validation
from triton_magics import operators
from triton_magics.harness.compile_ahead import AheadCompilation, Form, input_forms
from triton_magics.harness.correctness import case_scheduler
from triton_magics.harness.correctness.case_scheduler import CaseScheduler
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.languages.kernel_compiler import Target
from triton_magics.model import BESIDE, Case

FIRST, SLOW, LAST = (Case(shape=shape, dtype="float32", seed=1) for shape in ((1,), (2,), (3,)))


class Compiler:
    """Has compiled what `done` says, and the rest when it is waited for."""

    def __init__(
        self, done: Collection[Case], log: list[str], *, has_processes: bool = True
    ) -> None:
        self.done, self.log = set(input_forms(done)), log
        self.has_processes = has_processes

    def was_compiled(self, form: Form) -> bool:
        return form in self.done

    def is_finished(self, form: Form, *, within_s: float) -> bool:
        return form in self.done

    def wait(self, compile_forms: object, forms: Collection[Form] | None) -> None:
        all_forms = forms is None or set(forms) >= set(input_forms([FIRST, SLOW, LAST]))
        self.log.append("all compiled" if all_forms else f"{len(forms or ())} compiled")
        self.done |= set(forms or ())

    def is_left(self, form: Form) -> bool:
        return False

    def is_delayed(self, form: Form, *, within_s: float) -> bool:
        return form not in self.done

    def is_refused(self, form: Form) -> bool:
        return False

    def end(self, *, within_s: float) -> None:
        self.log.append("ended")


def story(monkeypatch: pytest.MonkeyPatch, *done: Case, has_processes: bool = True) -> list[str]:
    """Return the steps of a run of three cases, of which some are compiled."""
    log: list[str] = []
    job = job_for(KERNELS / "softmax_right.py")
    version = load_version(job.version)
    subject = Subject(operators.load("softmax"), version, job, torch.device("cuda"), "")
    monkeypatch.setattr(
        case_scheduler,
        "AheadCompilation",
        lambda *args, **more: Compiler(done, log, has_processes=has_processes),
    )

    @contextmanager
    def lock() -> Iterator[None]:
        log.append("taken")
        yield
        log.append("given back")

    with CaseScheduler.create(subject, [FIRST, SLOW, LAST], Recorder(), lock) as ours:
        words = {FIRST: "first", SLOW: "slow", LAST: "last"}
        for case in ours.compiled_first(list(words)):
            ours.wait_until_ready(case)
            log.append(words[case])
    return log


def test_steps_of_a_walk_stay_together() -> None:
    """The small shape was compiled by `write`; a long one has to come before it all the same."""
    small, long, again = (
        Case(shape=shape, dtype="float32", shape_class=BESIDE, seed=seed)
        for seed, shape in enumerate([(7, 13), (7, 4097), (7, 13)])
    )
    scheduler = CaseScheduler(
        subject=None,
        report=Recorder(),
        lock=nullcontext,
        ahead=Compiler([small, LAST], []),
        forms=[],
    )
    cases = [small, long, again, SLOW, LAST]
    assert scheduler.compiled_first(cases) == [LAST, small, long, again, SLOW]
    scheduler.ahead = Compiler([small, long, LAST], [])
    assert scheduler.compiled_first(cases) == [small, long, again, LAST, SLOW]


def test_a_compiled_case_runs_while_another_compiles() -> None:
    compiler = Compiler([LAST], [])
    scheduler = CaseScheduler(
        subject=None, report=Recorder(), lock=nullcontext, ahead=compiler, forms=[]
    )
    left = [FIRST, SLOW, LAST]
    assert scheduler.take_next(left) == LAST
    assert scheduler.take_next(left) == FIRST  # none is compiled: it waits for the first
    compiler.done.add(input_forms([SLOW])[0])
    assert (scheduler.take_next(left), left) == (SLOW, [])


def test_nothing_comes_between_the_steps_of_a_walk() -> None:
    short, long, again = (
        Case(shape=shape, dtype="float32", shape_class=BESIDE, seed=seed)
        for seed, shape in enumerate([(7, 13), (7, 4097), (7, 14)])
    )
    scheduler = CaseScheduler(
        subject=None,
        report=Recorder(),
        lock=nullcontext,
        ahead=Compiler([short, LAST], []),
        forms=[],
    )
    left = [long, again, LAST]
    assert scheduler.take_next(left) == LAST  # before the walk
    left = [short, long, again, LAST]
    assert [scheduler.take_next(left) for _ in range(3)] == [short, long, again]


def test_an_extent_is_skipped_while_its_kernel_compiles() -> None:
    wide = Case(shape=(2, 151_936), dtype="float32", extent="151,936 columns", seed=1)
    compiler = Compiler([FIRST], [])
    scheduler = CaseScheduler(
        subject=None, report=Recorder(), lock=nullcontext, ahead=compiler, forms=[]
    )
    assert (
        scheduler.skip_reason(wide) == "its kernel is not compiled after 6 s of waiting for extents"
    )
    assert scheduler.skip_reason(SLOW) is None
    compiler.done.add(input_forms([wide])[0])
    assert scheduler.skip_reason(wide) is None


@pytest.mark.parametrize(
    ("load", "full_s", "thorough_s"), [(0.5, 6.0, 20.0), (8.0, 12.0, 40.0), (400.0, 60.0, 200.0)]
)
def test_a_busy_machine_has_longer_to_compile_extents(
    monkeypatch: pytest.MonkeyPatch, load: float, full_s: float, thorough_s: float
) -> None:
    monkeypatch.setattr(case_scheduler.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(case_scheduler.os, "cpu_count", lambda: 4)
    assert case_scheduler.extents_compile_s(is_thorough=False) == full_s
    assert case_scheduler.extents_compile_s(is_thorough=True) == thorough_s


def test_a_full_plan_waits_for_a_wide_row_that_compiles() -> None:
    wide = Case(shape=(2, 70_001), dtype="float32", extent="over 65,536 columns", seed=1)
    waited: list[float] = []

    class Slow(Compiler):
        def is_delayed(self, form: Form, *, within_s: float) -> bool:
            waited.append(within_s)
            return within_s < 5

    scheduler = CaseScheduler(
        subject=None, report=Recorder(), lock=nullcontext, ahead=Slow([], []), forms=[]
    )
    assert scheduler.skip_reason(wide) is None
    assert waited == [6.0]


def test_a_wide_kernel_that_no_process_compiles_is_skipped() -> None:
    job = job_for(KERNELS / "softmax_right.py")
    wide = Case(shape=(1, 280_009), dtype="float32", extent="over 2^18 columns", seed=1)
    tall = Case(shape=(70_001, 3), dtype="float32", extent="over 65,535 rows", seed=1)
    forms = input_forms([wide, tall])
    ahead = AheadCompilation(job.op, job.version, forms, Target(90))  # no process here
    full, thorough = (
        CaseScheduler(
            subject=None, report=Recorder(), lock=nullcontext, ahead=ahead, forms=[],
            is_thorough=is_thorough,
        )
        for is_thorough in (False, True)
    )  # fmt: skip
    assert full.skip_reason(wide) == "no process compiles its kernel ahead; --thorough compiles it"
    assert full.skip_reason(tall) is None
    assert thorough.skip_reason(wide) is None


def test_all_is_compiled_and_one_turn_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = story(monkeypatch, FIRST, SLOW, LAST)
    assert steps == ["taken", "first", "slow", "last", "given back", "ended"]


def test_the_gpu_is_taken_when_the_first_case_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = story(monkeypatch)
    assert steps[:3] == ["1 compiled", "taken", "first"]


def test_it_is_given_back_while_a_compiler_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = story(monkeypatch, FIRST)
    assert steps == [
        "taken", "first", "given back", "1 compiled", "taken", "slow",
        "given back", "1 compiled", "taken", "last", "given back", "ended",
    ]  # fmt: skip


def test_without_compile_processes_threads_compile_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = story(monkeypatch, FIRST, has_processes=False)
    assert steps[:7] == [
        "taken", "first", "given back", "all compiled", "taken", "slow", "last"
    ]  # fmt: skip


def test_what_is_compiled_runs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = story(monkeypatch, FIRST, LAST)
    assert steps[:4] == ["taken", "first", "last", "given back"]
    assert steps[-3:] == ["slow", "given back", "ended"]


def test_cases_are_reported_in_the_order_of_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, shapes = KERNELS / "softmax_right.py", ((1, 4), (2, 5), (3, 6))
    monkeypatch.setattr(CaseScheduler, "compiled_first", lambda self, cases: cases[::-1])
    validation = run_validation(path, shapes=shapes, dtypes=("float32",))
    assert [result.case.shape for result in validation.cases] == list(shapes)
    assert validation.passed
