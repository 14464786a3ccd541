"""Tests of the main job and the corpus on a real GPU: `pytest -m gpu tests/gpu`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, field_of
from triton_magics.execution.local import gpu_detection
from triton_magics.harness.correctness.case_scheduler import LARGE_BLOCK
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

ROOT = Path(__file__).parent.parent.parent
RACING = ("clears_what_another_reads",)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        lab.op("softmax")
        yield lab


def write(lab: Lab, version: str, kernel: str) -> None:
    lab.write("softmax", version, (KERNELS / f"{kernel}.py").read_text())


def test_corpus_kernels_get_their_expected_verdicts() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "corpus.py")],
        capture_output=True, text=True, check=True, timeout=280,
        env={**environment, "PYTHONPATH": f"{ROOT}:{environment.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    verdicts = json.loads(process.stdout)
    wrong = {}
    for path in sorted(KERNELS.glob("*.py")):
        if "\nneeds: interpreter" in path.read_text():
            continue
        expected, statuses = field_of(path, "status"), set(verdicts[path.stem])
        fits = statuses == {"passed"} if expected == "passed" else expected in statuses
        if expected == "race":  # only the interpreter sees it; here its values are wrong
            fits = fits or "wrong_values" in statuses
        if path.stem in RACING:  # its values differ between calls, so that any check may see it
            fits = statuses != {"passed"}
        if not fits:
            wrong[path.stem] = (expected, statuses)
    assert wrong == {}
    assert len(verdicts) >= 34


def test_full_plan_runs_every_case_in_every_dtype(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert validation.status is Status.PASSED
    assert [c.case.extent for c in validation.not_run if not c.case.extent] == []
    assert {c.case.dtype for c in validation.cases} == {"float32", "float16", "bfloat16"}
    assert {c.case.size for c in validation.cases} == {None, "small", "medium", "large"}
    assert validation.environment is not None
    assert validation.environment.gpu_uuid


def test_a_full_plan_after_a_quick_one_compiles_no_wide_row(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    assert lab.validate("softmax", "v1", plan="quick").passed
    validation = lab.validate("softmax", "v1")
    assert validation.status is Status.PASSED
    reasons = {c.case.extent: str(c.reason) for c in validation.not_run}
    assert reasons["over 2^18 columns"] == LARGE_BLOCK  # it would take a minute


def test_benchmark_subtracts_the_cost_of_the_timer(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    lab.validate("softmax", "v1", plan="quick")
    benchmark = lab.bench("softmax", "v1")
    assert benchmark.status is Status.PASSED
    assert benchmark.clock == "gpu"
    assert [(t.provider, t.size) for t in benchmark.timings] == [
        (p, s) for s in ("small", "medium", "large") for p in ("torch", "v1_baseline")
    ]
    assert benchmark.floor_us is not None
    assert benchmark.empty_kernel_us is not None
    assert 0 < benchmark.empty_kernel_us < benchmark.floor_us
    assert benchmark.timer_us is not None
    assert benchmark.timer_us == pytest.approx(
        benchmark.floor_us - benchmark.empty_kernel_us, abs=0.6
    )
    for timing in benchmark.timings:
        assert len(timing.samples_us) == 10
        cost = timing.raw_us[0] - timing.samples_us[0]
        assert cost == pytest.approx(benchmark.timer_us, abs=1e-6)
    assert {c.verdict for c in benchmark.controls} <= {"same", "undecided"}
    assert benchmark.speedup("v1") is not None


def test_version_is_not_faster_than_its_copy(lab: Lab) -> None:
    for version in ("v2", "v3"):
        write(lab, version, "softmax_right")
        lab.validate("softmax", version, plan="quick")
    benchmark = lab.bench("softmax", "v2", "v3")
    for size in benchmark.sizes:
        comparison = benchmark.comparison("v3", size, baseline="v2")
        assert comparison is not None
        assert comparison.verdict in ("same", "undecided")


def test_shape_too_large_for_the_gpu_is_not_run(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    lab.op("softmax", shapes=((400_000_000, 300), (300, 1000)))  # 480 GB
    validation = lab.validate("softmax", "v1", plan="quick", dtypes=["float32"])
    assert isinstance(validation, Validation)
    assert validation.passed, validation
    (left_out,) = validation.not_run
    assert left_out.case.shape == (400_000_000, 300)
    assert left_out.reason == "its inputs do not fit the GPU's free memory"
    benchmark = lab.bench("softmax", "v1")
    lab.op("softmax", no_shapes=((400_000_000, 300), (300, 1000)))
    assert benchmark.final_us("v1") is not None
    own = benchmark.timing("v1", "300x1000")
    assert own is not None
    assert own.shape == (300, 1000)
    (gap,) = benchmark.not_timed
    assert (gap.size, gap.reason) == ("400000000x300", "does not fit the GPU's free memory")


def test_error_at_the_large_size_alone_is_explained(lab: Lab) -> None:
    source = (KERNELS / "softmax_right.py").read_text()
    late = source.replace("return out.view(x.shape)", (
        "if x.numel() > 2**23:\n        out[:, 7::9] *= 1.01\n    return out.view(x.shape)"
    ))  # fmt: skip
    assert late != source
    lab.write("softmax", "v7", late)
    validation = lab.validate("softmax", "v7", dtypes=["float32"])
    assert isinstance(validation, Validation)
    assert min(math.prod(c.case.shape) for c in validation.failed_cases) > 2**23
    (failed,) = [c for c in validation.failed_cases if c.case.size == "large"]
    assert failed.status is CaseStatus.WRONG_VALUES
    assert failed.deterministic is None  # the case is too large for further calls
    assert failed.mismatch is not None
    assert failed.mismatch.where == "every 9th column, from column 7"


ILLEGAL = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, far):
    tl.store(x_ptr + far, 1.0)

def triton_softmax(x):
    out = torch.empty_like(x)
    kernel[(1,)](out, 1 << 40)
    torch.cuda.synchronize()
    return out
"""
ENDLESS = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr):
    while tl.load(x_ptr, volatile=True) != 12345.0:
        pass

def triton_softmax(x):
    out = torch.zeros_like(x)
    kernel[(1,)](out)
    return out
"""


def test_next_job_works_after_an_illegal_address(lab: Lab) -> None:
    lab.write("softmax", "v8", ILLEGAL)
    validation = lab.validate("softmax", "v8")
    assert isinstance(validation, Validation)
    assert validation.status is Status.RUNTIME_ERROR
    assert "illegal memory access" in str(validation.error)
    assert any("context unusable" in str(c.reason) for c in validation.not_run)
    write(lab, "v1", "softmax_right")
    assert lab.validate("softmax", "v1", plan="quick").passed


def test_next_job_works_after_an_endless_kernel(lab: Lab) -> None:
    lab.write("softmax", "v9", ENDLESS)
    lab.settings.silence_s = 4.0
    validation = lab.validate("softmax", "v9")
    lab.settings.silence_s = 20.0
    assert isinstance(validation, Validation)
    assert validation.status is Status.TIMEOUT
    assert [c.status for c in validation.failed_cases] == [CaseStatus.TIMEOUT]
    assert lab.validate("softmax", "v1", plan="quick").passed
