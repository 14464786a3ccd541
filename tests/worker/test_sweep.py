"""A sweep in the worker: each point checked for real (in the interpreter), times by a script."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.worker.harness import KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import OpRef, SweepJob, SweepPoint
from triton_magics.model import (
    CaseStatus,
    Comparison,
    KernelError,
    KernelResources,
    NotTimed,
    Status,
    Timing,
)
from triton_magics.worker import bench, sweep
from triton_magics.worker.load import UserFault, refused_by_compiler
from triton_magics.worker.slots import case_of

BASE = KERNELS / "sum_right.py"


def job(*sources: str, **changes: Any) -> SweepJob:
    """A sweep of `sum` over these sources."""
    points = tuple(
        SweepPoint(settings={"N": i}, source=s, sha256=hashlib.sha256(s.encode()).hexdigest())
        for i, s in enumerate(sources)
    )
    given = {
        "op": OpRef(name="sum"), "version": version_of(BASE, "sum"), "points": points,
        "size": "16x40", "dtype": "float32", "seed": 5, **changes,
    }  # fmt: skip
    return SweepJob(**given)


def checked(tmp_path: Path, asked: SweepJob) -> tuple[list[sweep.Point], Recorder]:
    """The points after their checks, one probe each."""
    report, op = Recorder(), ops.load("sum")
    task = sweep.Task(asked, op, case_of(op, asked.size, "float32", 5), report, sweep.Clock())
    points = sweep._written(asked, tmp_path)
    sweep._load(points)
    assert sweep._check_all(task, sweep._probes(task)[:1], points) is None
    return points, report


def test_each_point_gets_the_verdict_of_its_own_source(tmp_path: Path) -> None:
    right = BASE.read_text()
    points, report = checked(
        tmp_path,
        job(
            right,
            right.replace("tl.sum(", "0.5 * tl.sum("),
            right + "\nraise KeyError('at import')\n",
            right.replace("def triton_sum(x):\n", "def triton_sum(x):\n    1 // 0\n"),
        ),
    )
    assert [p.status for p in points] == [
        CaseStatus.PASSED, CaseStatus.WRONG_VALUES, CaseStatus.RUNTIME_ERROR,
        CaseStatus.RUNTIME_ERROR,
    ]  # fmt: skip
    assert "elements wrong" in str(points[1].reason)
    assert "KeyError: 'at import'" in str(points[2].reason)
    assert [c.settings["N"] for c in report.configurations] == [0, 1, 3]
    assert "checking N=3" in report.stages


REGISTERS = KernelResources(name="sum_kernel", num_warps=4, registers=54)
REFUSED = KernelError(kind="RuntimeError", message="PassManager::run failed")


@pytest.mark.parametrize(
    ("each", "status"),
    [
        ([(None, REFUSED), (REGISTERS, None)], Status.PASSED),
        ([(None, REFUSED), (None, None)], Status.COMPILE_ERROR),
        ([(None, None)], Status.NO_GPU),
    ],
)
def test_what_could_not_be_compiled_ahead_is_no_compilers_refusal(
    tmp_path: Path, each: list[tuple[KernelResources | None, KernelError | None]], status: Status
) -> None:
    points = sweep._written(job(*(f"# {i}" for i in range(len(each)))), tmp_path)
    for point, (kernel, error) in zip(points, each, strict=True):
        point.kernel, point.error = kernel, error
    assert sweep.compiled_status(points)["status"] is status


@pytest.mark.parametrize(
    ("kind", "message", "refused"),
    [
        ("RuntimeError", "PassManager::run failed", True),
        ("RuntimeError", "Internal Triton PTX codegen error: `ptxas` stderr", True),
        ("CompileTimeAssertionFailure", "", True),
        ("RuntimeError", "Tensor.item() cannot be called on meta tensors", False),
    ],
)
def test_who_refuses_a_version(kind: str, message: str, refused: bool) -> None:
    assert refused_by_compiler(KernelError(kind=kind, message=message)) is refused


def test_a_point_that_is_wrong_at_the_timed_size_alone_is_found(tmp_path: Path) -> None:
    right = BASE.read_text()
    only_there = right.replace(
        "def triton_sum(x):\n",
        "def triton_sum(x):\n    if x.shape == (16, 40):\n        return 2 * x.sum(-1)\n",
    )
    points, _ = checked(tmp_path, job(right, only_there))
    assert [p.status for p in points] == [CaseStatus.PASSED, CaseStatus.WRONG_VALUES]
    assert "16x40 float32: " in str(points[1].reason)


def test_an_error_names_the_line_of_the_versions_file(tmp_path: Path) -> None:
    source = "x = 1\n" + "raise KeyError('here')\n"
    ref = version_of(BASE, "sum").model_copy(update={"header_lines": 2})
    points = sweep._written(job(source, version=ref), tmp_path)
    sweep._load(points)
    error = points[0].error
    assert error is not None
    assert (error.line, error.file_line, error.cell_line) == (2, 4, 3)
    assert error.file == "kernels/sum/v1_baseline.py"


@pytest.mark.parametrize("raised", ["SystemExit", "KeyboardInterrupt"])
def test_a_point_that_would_end_its_process_at_the_timed_size_costs_no_other_point(
    tmp_path: Path, raised: str
) -> None:
    right = BASE.read_text()
    leaves = right.replace(
        "def triton_sum(x):\n",
        f"def triton_sum(x):\n    if x.shape == (16, 40):\n        raise {raised}('left')\n",
    )
    points, _ = checked(tmp_path, job(leaves, right))
    assert [p.status for p in points] == [CaseStatus.RUNTIME_ERROR, CaseStatus.PASSED]
    assert points[0].reason == f"{raised}: left"


def test_a_shape_that_the_op_does_not_take_is_refused() -> None:
    with pytest.raises(UserFault, match="matmul makes no inputs of shape 7x13"):
        sweep.run(job("", op=OpRef(name="matmul"), size="7x13"), Recorder())


# -------------------------------------------------------------------------------- the timing


def timing(name: str, us: float) -> Timing:
    samples = tuple(us * (1 + i % 3 / 1000) for i in range(10))
    return Timing(provider=name, size="16x40", shape=(1,), clock="gpu", samples_us=samples)


NOTHING: dict[str, Any] = {
    "status": Status.PASSED, "not_timed": (), "timings": (), "tick_us": 0.03, "floor_us": 2.7,
    "badges": (), "conditions": (),
}  # fmt: skip


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Times three right points; the first time `bench.measure` voids the session for `void`."""

    def run(times: dict[str, float], void: str | None) -> tuple[list[sweep.Point], dict[str, Any]]:
        sessions = []

        def measure(asked: Any, op: Any, versions: Any, report: Any, *, known: Any) -> Any:
            names = [v.version for v in asked.versions]
            sessions.append(names)
            if void in names:
                said = f"{void} gave a wrong answer"
                gap = NotTimed(size="16x40", provider=void, reason=said)
                failed = {"status": Status.FAILED, "message": said}
                return {**failed, "not_timed": (gap,), "timings": ()}
            if void == "no memory":
                gap = NotTimed(size="16x40", reason="does not fit the GPU's free memory")
                return {**NOTHING, "status": Status.FAILED, "not_timed": (gap,)}
            if void == "unstable":
                gap = NotTimed(size="16x40", provider="v3", reason="no valid run in 4 tries")
                first = timing("v1", 9.0)
                return {**NOTHING, "not_timed": (gap,), "timings": (first,)}
            if void == "broken":
                said = "v2 at 16x40: CUDA error; nothing after it could be timed"
                return {**NOTHING, "status": Status.CRASHED, "message": said}
            made = tuple(timing(n, us) for n, us in times.items() if n in (*names, "torch"))
            return {
                "status": Status.PASSED, "not_timed": (), "timings": made, "tick_us": 0.03,
                "floor_us": 2.7, "badges": (), "conditions": (),
            }  # fmt: skip

        monkeypatch.setattr(bench, "measure", measure)
        asked = job(*[BASE.read_text()] * 3)
        task = sweep.Task(asked, ops.load("sum"), None, Recorder(), sweep.Clock())
        points = sweep._written(asked, tmp_path)
        sweep._load(points)
        for point in points:
            point.status = CaseStatus.PASSED
        return points, sweep._time(task, points, None)

    return run


def test_every_point_is_compared_with_the_best(timed: Any) -> None:
    points, made = timed({"torch": 12.0, "v1": 9.0, "v2": 6.0, "v3": 6.02}, void=None)
    assert made["status"] is Status.PASSED
    assert made["torch"].mean_us == pytest.approx(12.0, rel=0.01)
    told = [p.comparison for p in points]
    assert isinstance(told[0], Comparison)
    assert (told[0].candidate, told[0].baseline, told[0].verdict) == ("N=0", "N=1", "slower")
    assert told[1] is None
    assert told[2].verdict == "same"


def test_a_point_that_is_wrong_in_a_timed_run_is_never_the_best(timed: Any) -> None:
    points, made = timed({"torch": 12.0, "v1": 9.0, "v2": 6.0, "v3": 7.0}, void="v2")
    assert made["status"] is Status.PASSED
    assert [p.status for p in points] == [
        CaseStatus.PASSED, CaseStatus.WRONG_VALUES, CaseStatus.PASSED,
    ]  # fmt: skip
    assert points[1].timing is None
    assert points[1].reason == "gave a wrong answer"  # by its settings' name, not by ours
    assert points[0].comparison is not None
    assert points[0].comparison.baseline == "N=2"


def test_where_nothing_fits_the_memory_the_sweep_ends_and_says_so(timed: Any) -> None:
    points, made = timed({}, void="no memory")
    assert made["status"] is Status.FAILED
    assert made["message"] == "does not fit the GPU's free memory"
    assert [p.timing for p in points] == [None] * 3


def test_a_point_without_a_valid_run_has_no_time_and_is_not_called_wrong(timed: Any) -> None:
    points, made = timed({}, void="unstable")
    assert made["status"] is Status.PASSED
    assert (points[2].status, points[2].reason) == (CaseStatus.NOT_RUN, "no valid run in 4 tries")
    assert points[0].timing is not None


def test_a_point_that_breaks_the_gpu_while_it_is_timed_is_named(timed: Any) -> None:
    points, made = timed({}, void="broken")
    assert made["status"] is Status.CRASHED
    assert made["message"] == "N=1 left the GPU's context unusable"
    assert points[1].status is CaseStatus.RUNTIME_ERROR
    assert "CUDA error" in str(points[1].reason)
