"""Jobs report the end of a wait for the GPU before they run user code, which counts again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from tests.harness.kit import KERNELS, Recorder, version_of
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import RunJob
from triton_magics.harness.correctness import run_job
from triton_magics.harness.timing import sweep_job

WAITING = "waiting 3 s for the GPU"


@contextmanager
def lock_after_a_wait(uuid: str, *, on_wait: Callable[[str], None], **_: object) -> Iterator[None]:
    on_wait(WAITING)
    yield


class Reached(Exception):
    pass


def reach(*_: object) -> NoReturn:
    raise Reached


def test_run_reports_before_it_makes_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_job, "gpu_lock", lock_after_a_wait)
    monkeypatch.setattr(run_job, "_inputs", reach)
    version, report = version_of(KERNELS / "softmax_right.py", "softmax"), Recorder()
    with pytest.raises(Reached):
        run_job.run(RunJob(op=OpRef(name="softmax"), version=version), report)  # type: ignore[arg-type]
    assert report.stages == [WAITING, "making inputs"]


def test_sweep_reports_before_it_imports_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_job, "gpu_lock", lock_after_a_wait)
    monkeypatch.setattr(sweep_job, "_probes", lambda task: [])
    monkeypatch.setattr(sweep_job, "_load", reach)
    report = Recorder()
    version = SimpleNamespace(language="triton")
    stub = SimpleNamespace(name="softmax", compile_s=1.0, version=version)
    task: Any = sweep_job.SweepTask(stub, stub, None, report, sweep_job.StepTimer())  # type: ignore[arg-type]
    with pytest.raises(Reached):
        sweep_job._on_gpu(task, [])
    assert report.stages == [WAITING, "compiling"]
