"""Jobs on two GPUs of one machine: each has a queue, workers and a lock of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.kit import KERNELS, job_for
from triton_magics.config import Settings
from triton_magics.errors import UnknownName
from triton_magics.execution.local import gpu_detection
from triton_magics.execution.local.executor import LocalExecutor
from triton_magics.model import Validation

N_GPUS = len(gpu_detection.gpus()) if gpu_detection.detect() == "gpu" else 0
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(N_GPUS < 2, reason="needs two NVIDIA GPUs")]
JOB = job_for(KERNELS / "softmax_right.py", plan="quick")


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(Settings())
    yield executor
    executor.close()


def validate_on(executor: LocalExecutor, device: str) -> Validation:
    answer = executor.submit(JOB, device=device).result(120).answer
    assert isinstance(answer, Validation)
    return answer


def test_a_job_runs_on_the_gpu_that_it_names(executor: LocalExecutor) -> None:
    for device in executor.devices():
        answer = validate_on(executor, device.id)
        assert answer.passed
        assert answer.environment is not None
        assert str(answer.environment.gpu_uuid).removeprefix("GPU-") in device.id


def test_jobs_of_two_gpus_overlap_in_time(executor: LocalExecutor) -> None:
    first, second = executor.devices()[:2]
    running: list[str] = []
    both: list[bool] = []

    def watch(name: str) -> object:
        def listen(event: object) -> None:
            if getattr(event, "state", None) == "running":
                running.append(name)
                both.append(len(running) == 2)
            if getattr(event, "state", None) == "ended":
                running.remove(name)

        return listen

    handles = [
        executor.submit(JOB, device=d.id, on_event=watch(d.id))  # type: ignore[arg-type]
        for d in (first, second)
    ]
    assert all(handle.result(120).answer.passed for handle in handles)  # type: ignore[union-attr]
    assert any(both)


def test_an_unknown_gpu_is_refused_with_the_known_ones(executor: LocalExecutor) -> None:
    with pytest.raises(UnknownName, match=executor.devices()[1].id):
        executor.submit(JOB, device="GPU-0")
