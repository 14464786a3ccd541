"""A sweep in the worker: each point checked for real (in the interpreter), times by a script."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kit import KERNELS, Recorder, version_of
from triton_magics import languages, operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import SweepJob, SweepPoint
from triton_magics.harness.load import UserFault
from triton_magics.harness.timing import bench_job, sweep_job
from triton_magics.harness.timing.input_pool import timing_case
from triton_magics.model import (
    CaseStatus,
    Comparison,
    KernelError,
    KernelResources,
    NotTimed,
    Status,
    Timing,
)

BASE = KERNELS / "sum_right.py"


def job(*sources: str, **changes: Any) -> SweepJob:
    """Return a sweep job of `sum` over these sources."""
    points = tuple(
        SweepPoint(settings={"N": i}, source=s, sha256=hashlib.sha256(s.encode()).hexdigest())
        for i, s in enumerate(sources)
    )
    fields = {
        "op": OpRef(name="sum"), "version": version_of(BASE, "sum"), "points": points,
        "size": "16x40", "dtype": "float32", "seed": 5, **changes,
    }  # fmt: skip
    return SweepJob(**fields)


def check_points(request: SweepJob) -> tuple[list[sweep_job.GridPoint], Recorder]:
    """Return the points after their checks, one probe each."""
    report, op = Recorder(), operators.load("sum")
    task = sweep_job.SweepTask(
        request, op, timing_case(op, request.size, "float32", 5), report, sweep_job.StepTimer()
    )
    points = sweep_job._make_points(request)
    sweep_job._load(points)
    assert sweep_job._check_all(task, sweep_job._probes(task)[:1], points) is None
    return points, report


def test_each_point_gets_its_own_verdict() -> None:
    right = BASE.read_text()
    points, report = check_points(
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
def test_missing_compilation_is_no_compile_error(
    each: list[tuple[KernelResources | None, KernelError | None]], status: Status
) -> None:
    points = sweep_job._make_points(job(*(f"# {i}" for i in range(len(each)))))
    for point, (kernel, error) in zip(points, each, strict=True):
        point.kernel, point.error = kernel, error
    assert sweep_job.compiled_status(points)["status"] is status


@pytest.mark.parametrize(
    ("kind", "message", "refused"),
    [
        ("RuntimeError", "PassManager::run failed", True),
        ("RuntimeError", "Internal Triton PTX codegen error: `ptxas` stderr", True),
        ("CompileTimeAssertionFailure", "", True),
        ("RuntimeError", "Tensor.item() cannot be called on meta tensors", False),
    ],
)
def test_compiler_errors_are_recognized(kind: str, message: str, refused: bool) -> None:
    assert languages.runtime().is_compile_error(KernelError(kind=kind, message=message)) is refused


def test_point_wrong_only_at_the_timed_size_fails() -> None:
    right = BASE.read_text()
    only_there = right.replace(
        "def triton_sum(x):\n",
        "def triton_sum(x):\n    if x.shape == (16, 40):\n        return 2 * x.sum(-1)\n",
    )
    points, _ = check_points(job(right, only_there))
    assert [p.status for p in points] == [CaseStatus.PASSED, CaseStatus.WRONG_VALUES]
    assert "16x40 float32: " in str(points[1].reason)


def test_error_names_the_line_of_the_version_file() -> None:
    source = "x = 1\n" + "raise KeyError('here')\n"
    plain = version_of(BASE, "sum")
    header = {"source": f"# 1\n# 2\n{plain.source}", "header_lines": 2}
    ref = plain.evolve(**header)
    points = sweep_job._make_points(job(source, version=ref))
    sweep_job._load(points)
    error = points[0].error
    assert error is not None
    assert (error.line, error.file_line, error.cell_line) == (2, 4, 3)
    assert error.file == "kernels/sum/v1_baseline.py"


@pytest.mark.parametrize("raised", ["SystemExit", "KeyboardInterrupt"])
def test_point_that_exits_the_process_fails_alone(
    raised: str,
) -> None:
    right = BASE.read_text()
    leaves = right.replace(
        "def triton_sum(x):\n",
        f"def triton_sum(x):\n    if x.shape == (16, 40):\n        raise {raised}('left')\n",
    )
    points, _ = check_points(job(leaves, right))
    assert [p.status for p in points] == [CaseStatus.RUNTIME_ERROR, CaseStatus.PASSED]
    assert points[0].reason == f"{raised}: left"


def test_bad_shape_is_refused() -> None:
    with pytest.raises(UserFault, match="matmul makes no inputs of shape 7x13"):
        sweep_job.run(job("", op=OpRef(name="matmul"), size="7x13"), Recorder())


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
    """Return a function that times three passed points; `void` names a failure."""

    def run(
        times: dict[str, float], void: str | None
    ) -> tuple[list[sweep_job.GridPoint], dict[str, Any]]:
        sessions = []

        def measure(request: Any, op: Any, versions: Any, report: Any, *, peak_rates: Any) -> Any:
            names = [v.version for v in request.versions]
            sessions.append(names)
            if void in names:
                message = f"{void} gave a wrong answer"
                gap = NotTimed(size="16x40", provider=void, reason=message)
                failed = {"status": Status.FAILED, "message": message}
                return {**failed, "not_timed": (gap,), "timings": ()}
            if void == "no memory":
                gap = NotTimed(size="16x40", reason="does not fit the GPU's free memory")
                return {**NOTHING, "status": Status.FAILED, "not_timed": (gap,)}
            if void == "unstable":
                gap = NotTimed(size="16x40", provider="v3", reason="no valid run in 4 tries")
                first = timing("v1", 9.0)
                return {**NOTHING, "not_timed": (gap,), "timings": (first,)}
            if void == "broken":
                gap = NotTimed(size="16x40", provider="v2", reason="CUDA error")
                return {**NOTHING, "status": Status.CRASHED, "message": "-", "not_timed": (gap,)}
            timings = tuple(timing(n, us) for n, us in times.items() if n in (*names, "torch"))
            return {
                "status": Status.PASSED, "not_timed": (), "timings": timings, "tick_us": 0.03,
                "floor_us": 2.7, "badges": (), "conditions": (),
            }  # fmt: skip

        monkeypatch.setattr(bench_job, "measure", measure)
        request = job(*[BASE.read_text()] * 3)
        task = sweep_job.SweepTask(
            request, operators.load("sum"), None, Recorder(), sweep_job.StepTimer()
        )
        points = sweep_job._make_points(request)
        sweep_job._load(points)
        for point in points:
            point.status = CaseStatus.PASSED
        return points, sweep_job._time(task, points, None)

    return run


def test_every_point_is_compared_with_the_fastest(timed: Any) -> None:
    points, result = timed({"torch": 12.0, "v1": 9.0, "v2": 6.0, "v3": 6.02}, void=None)
    assert result["status"] is Status.PASSED
    assert result["torch"].mean_us == pytest.approx(12.0, rel=0.01)
    comparisons = [p.comparison for p in points]
    assert isinstance(comparisons[0], Comparison)
    assert (comparisons[0].candidate, comparisons[0].baseline, comparisons[0].verdict) == (
        "N=0",
        "N=1",
        "slower",
    )
    assert comparisons[1] is None
    assert comparisons[2].verdict == "same"


def test_point_wrong_in_a_timed_run_is_not_ranked(timed: Any) -> None:
    points, result = timed({"torch": 12.0, "v1": 9.0, "v2": 6.0, "v3": 7.0}, void="v2")
    assert result["status"] is Status.PASSED
    assert [p.status for p in points] == [
        CaseStatus.PASSED, CaseStatus.WRONG_VALUES, CaseStatus.PASSED,
    ]  # fmt: skip
    assert points[1].timing is None
    assert points[1].reason == "gave a wrong answer"  # by its settings' name, not by ours
    assert points[0].comparison is not None
    assert points[0].comparison.baseline == "N=2"


def test_sweep_without_memory_fails_with_a_message(timed: Any) -> None:
    points, result = timed({}, void="no memory")
    assert result["status"] is Status.FAILED
    assert result["message"] == "does not fit the GPU's free memory"
    assert [p.timing for p in points] == [None] * 3


def test_point_without_a_valid_run_is_not_wrong(timed: Any) -> None:
    points, result = timed({}, void="unstable")
    assert result["status"] is Status.PASSED
    assert (points[2].status, points[2].reason) == (CaseStatus.NOT_RUN, "no valid run in 4 tries")
    assert points[0].timing is not None


def test_point_that_breaks_the_gpu_is_named(timed: Any) -> None:
    points, result = timed({}, void="broken")
    assert result["status"] is Status.CRASHED
    assert result["culprit"] == {"N": 1}
    assert result["message"] == "N=1 left the GPU's context unusable"
    assert points[1].status is CaseStatus.RUNTIME_ERROR
    assert "CUDA error" in str(points[1].reason)
