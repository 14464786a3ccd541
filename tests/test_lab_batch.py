# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Many verbs at the same time: order, failures, resumption, interrupts."""

from __future__ import annotations

import json
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import SOURCE, engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, WorkerError
from triton_magics.execution import Outcome
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Status
from triton_magics.rendering import to_text, view


def step(verb: str, **arguments: Any) -> dict[str, Any]:
    return {"verb": verb, "arguments": {"op": "softmax", **arguments}}


def validate(version: str) -> dict[str, Any]:
    return step("validate", version=version)


def kernel(version: str, text: str = "") -> dict[str, Any]:
    return step("kernel", version=version, source=SOURCE.format(version + text))


def as_file(folder: Path, *lines: Any) -> str:
    file = folder / "steps.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(file)


def test_steps_of_a_line_run_in_order(lab: Lab, tmp_path: Path) -> None:
    lines = [[kernel(f"v{n}"), validate(f"v{n}")] for n in (1, 2, 3)]
    batch = lab.batch(as_file(tmp_path, *lines))
    assert batch.status is Status.PASSED
    assert [e.line for e in batch.entries] == [1, 2, 3]
    assert [e.label for e in batch.entries] == [f"validate softmax v{n}" for n in (1, 2, 3)]
    passed = [lab.validation("softmax", f"v{n}") for n in (1, 2, 3)]
    assert all(v is not None and v.passed for v in passed)


def test_a_line_that_fails_hurts_no_other(lab: Lab, engine: FakeExecutor, tmp_path: Path) -> None:
    write(lab, "v1")
    file = as_file(tmp_path, validate("v1"), validate("v9"), [validate("v8"), validate("v1")])
    batch = lab.batch(file)
    assert [(e.line, e.ok) for e in batch.entries] == [(1, True), (2, False), (3, False)]
    assert "softmax has no v9" in batch.entries[1].error
    assert batch.entries[2].label == "validate softmax v8"  # its second step did not run
    assert batch.status is Status.FAILED


def test_results_are_in_the_file_and_are_not_run_again(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    write(lab, "v1")
    write(lab, "v2")
    file = as_file(tmp_path, validate("v1"), validate("v2"), validate("v1"))
    results = tmp_path / "steps.results.jsonl"
    first = lab.batch(file)
    whole = results.read_text()
    stored = [json.loads(line) for line in whole.splitlines()]
    assert {r["value"]["version"] for r in stored} == {"v1_baseline", "v2_tiling"}
    # A kill while the last line was written leaves a part of it.
    results.write_text(whole[: len(whole) - 40])
    before = len(engine.jobs)
    again = lab.batch(file)
    assert (again.resumed, len(engine.jobs) - before) == (2, 1)
    assert [e.key for e in again.entries] == [e.key for e in first.entries]
    assert lab.batch(file).resumed == 3


def test_lines_that_are_refused_are_named_before_any_runs(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    file = as_file(
        tmp_path, validate("v1"), {"verb": "validat"}, step("bench", runs=0), [], 7,
        {"verb": "batch", "arguments": {"file": "x"}}, {"verb": "op", "nonsense": 1},
    )  # fmt: skip
    with pytest.raises(BadValue) as refused:
        lab.batch(file)
    text = str(refused.value)
    assert [n for n in range(1, 9) if f"line {n}: " in text] == [2, 3, 4, 5, 6, 7]
    assert not engine.jobs
    assert not (tmp_path / "steps.results.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "can't be read"), ("{}\n{nonsense\n", "line 2 is no JSON"), ("\xff", "line 1 is no")],
)
def test_a_file_that_is_no_json_lines_is_refused(
    lab: Lab, tmp_path: Path, text: str | None, message: str
) -> None:
    file = tmp_path / "steps.jsonl"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadValue, match=message):
        lab.batch(str(file))


def test_several_lines_run_at_the_same_time(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    write(lab, "v2")
    together = threading.Barrier(2, timeout=60)
    run = engine.run

    def wait_and_run(job: Any, **options: Any) -> Outcome:
        together.wait()
        return run(job, **options)

    engine.run = wait_and_run
    results = list(lab.map([validate("v1"), validate("v2")], at_once=2))
    assert sorted(r.entry.line for r in results) == [1, 2]
    assert all(r.value.passed for r in results)


def test_leaving_the_loop_cancels_the_rest(lab: Lab, engine: FakeExecutor) -> None:
    for n in range(1, 5):
        write(lab, f"v{n}")
    before = len(engine.jobs)
    for _ in lab.map([validate(f"v{n}") for n in range(1, 5)], at_once=1):
        break
    assert len(engine.jobs) - before <= 2


def test_a_broken_worker_is_an_error_of_its_line(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")

    def fail(job: Any) -> Outcome:
        raise WorkerError("no worker could be started")

    engine.answer = fail
    (result,) = lab.map([validate("v1")])
    assert (result.entry.ok, result.entry.error) == (False, "no worker could be started")


def test_a_cancelled_batch_ends_its_jobs_and_keeps_what_is_done(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    for n in (1, 2, 3):
        write(lab, f"v{n}")
    run, release, has_begun = engine.run, threading.Event(), threading.Event()
    engine.on_cancel = release.set

    def hang_at_v2(job: Any, **options: Any) -> Outcome:
        if job.version.version.startswith("v2"):
            has_begun.set()
            release.wait(60)
            return Outcome(status="interrupted")
        return run(job, **options)

    engine.run = hang_at_v2
    file = as_file(tmp_path, *(validate(f"v{n}") for n in (1, 2, 3)))
    steps: list[Progress] = []
    call = lab.jobs.submit(
        "batch",
        lambda: lab.batch(file, at_once=1),
        on_event=lambda event: steps.append(event.progress) if event.progress else None,
    )
    assert has_begun.wait(60)
    assert call.stop()
    with pytest.raises(CancelledError):
        call.result(60)
    assert engine.cancelled >= 1
    assert [(s.done, s.total) for s in steps] == [(1, 3)]
    engine.run = run
    assert lab.batch(file).resumed == 1


def test_lines_that_could_not_run_are_run_by_a_further_call(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    for n in range(1, 9):
        write(lab, f"v{n}")
    run = engine.run

    def fail_after_v1(job: Any, **options: Any) -> Outcome:
        if not job.version.version.startswith("v1"):
            raise WorkerError("the scheduler is gone")
        return run(job, **options)

    engine.run = fail_after_v1
    file = as_file(tmp_path, *(validate(f"v{n}") for n in range(1, 9)))
    batch = lab.batch(file, at_once=1)
    assert batch.status is Status.UNAVAILABLE
    assert [(e.ok, e.has_run) for e in batch.entries] == [(True, True)] + 5 * [(False, False)]
    text = to_text(view(batch), width=200)
    assert "1 of 8 lines succeeded · 7 did not run" in text
    assert "5 lines in a row could not run: the scheduler is gone" in text
    engine.run = run
    assert (lab.batch(file).resumed, lab.batch(file).status) == (1, Status.PASSED)


def test_a_shape_may_be_text(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    lines = [step("validate", version="v1", shapes=[shape]) for shape in ("7x13", [7, 13])]
    assert all(result.entry.ok for result in lab.map(lines, at_once=1))
    assert [job.shapes for job in engine.jobs[-2:]] == [((7, 13),)] * 2


def test_a_line_that_failed_names_the_case(lab: Lab, engine: FakeExecutor, tmp_path: Path) -> None:
    write(lab, "v1")
    engine.verdicts[lab.source("softmax", "v1").sha256] = Status.FAILED
    batch = lab.batch(as_file(tmp_path, validate("v1")))
    assert batch.entries[0].reason == "small 256x256 float32: wrong values"
    assert "small 256x256 float32: wrong values" in to_text(view(batch), width=200)
