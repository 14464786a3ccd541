"""The main job and the corpus on a real GPU. `pytest -m gpu tests/gpu`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.harness import KERNELS, told
from triton_magics.engine import gpu
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

ROOT = Path(__file__).parent.parent.parent
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as made:
        made.op("softmax")
        yield made


def write(lab: Lab, version: str, kernel: str) -> None:
    lab.write("softmax", version, (KERNELS / f"{kernel}.py").read_text())


def test_the_corpus_gets_the_verdicts_that_its_files_name() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    told_by = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "corpus.py")],
        capture_output=True, text=True, check=True, timeout=280,
        env={**environment, "PYTHONPATH": f"{ROOT}:{environment.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    found = json.loads(told_by.stdout)
    wrong = {}
    for path in sorted(KERNELS.glob("*.py")):
        if "\nneeds: interpreter" in path.read_text():
            continue
        wanted, statuses = told(path, "status"), set(found[path.stem])
        fits = statuses == {"passed"} if wanted == "passed" else wanted in statuses
        if not fits:
            wrong[path.stem] = (wanted, statuses)
    assert wrong == {}
    assert len(found) >= 34


def test_the_full_plan_runs_every_case_in_every_dtype(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert made.status is Status.PASSED
    assert made.not_run == ()
    assert {c.case.dtype for c in made.cases} == {"float32", "float16", "bfloat16"}
    assert {c.case.size for c in made.cases} == {None, "small", "medium", "large"}
    assert made.environment is not None
    assert made.environment.gpu_uuid


def test_a_benchmark_is_net_of_the_floor_and_its_control_is_torch_itself(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    lab.validate("softmax", "v1", plan="quick")
    made = lab.bench("softmax", "v1")
    assert made.status is Status.PASSED
    assert made.clock == "gpu"
    assert [(t.provider, t.size) for t in made.timings] == [
        (p, s) for s in ("small", "medium", "large") for p in ("torch", "v1_baseline")
    ]
    assert made.floor_us is not None
    assert made.empty_kernel_us is not None
    assert 0 < made.empty_kernel_us < made.floor_us
    assert made.timer_us is not None
    assert made.timer_us == pytest.approx(made.floor_us - made.empty_kernel_us, abs=0.6)
    for timing in made.timings:
        assert len(timing.samples_us) == 10
        cost = timing.raw_us[0] - timing.samples_us[0]
        assert cost == pytest.approx(made.timer_us, abs=1e-6)
    assert {c.verdict for c in made.controls} <= {"same", "undecided"}
    assert made.speedup("v1") is not None


def test_a_version_raced_against_itself_is_not_faster(lab: Lab) -> None:
    for version in ("v2", "v3"):
        write(lab, version, "softmax_right")
        lab.validate("softmax", version, plan="quick")
    made = lab.bench("softmax", "v2", "v3")
    for size in made.sizes:
        told_of = made.comparison("v3", size, baseline="v2")
        assert told_of is not None
        assert told_of.verdict in ("same", "undecided")


def test_a_shape_that_does_not_fit_this_gpu_is_not_run_and_the_rest_is(lab: Lab) -> None:
    write(lab, "v1", "softmax_right")
    lab.op("softmax", shapes=((400_000_000, 300), (300, 1000)))  # 480 GB
    made = lab.validate("softmax", "v1", plan="quick", dtypes=["float32"])
    assert isinstance(made, Validation)
    assert made.passed, made
    (left_out,) = made.not_run
    assert left_out.case.shape == (400_000_000, 300)
    assert left_out.reason == "its inputs do not fit the GPU's free memory"
    timed = lab.bench("softmax", "v1")
    lab.op("softmax", no_shapes=((400_000_000, 300), (300, 1000)))
    assert timed.final_us("v1") is not None
    own = timed.timing("v1", "300x1000")
    assert own is not None
    assert own.shape == (300, 1000)
    (gap,) = timed.not_timed
    assert (gap.size, gap.reason) == ("400000000x300", "does not fit the GPU's free memory")


def test_a_kernel_that_is_wrong_at_the_large_size_alone_is_explained(lab: Lab) -> None:
    source = (KERNELS / "softmax_right.py").read_text()
    late = source.replace("return out.view(x.shape)", (
        "if x.numel() > 2**23:\n        out[:, 7::9] *= 1.01\n    return out.view(x.shape)"
    ))  # fmt: skip
    assert late != source
    lab.write("softmax", "v7", late)
    made = lab.validate("softmax", "v7", dtypes=["float32"])
    assert isinstance(made, Validation)
    (failed,) = made.failed_cases
    assert failed.case.size == "large"
    assert failed.status is CaseStatus.WRONG_VALUES
    assert failed.deterministic is True
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


def test_after_an_illegal_address_the_next_job_works(lab: Lab) -> None:
    lab.write("softmax", "v8", ILLEGAL)
    made = lab.validate("softmax", "v8")
    assert isinstance(made, Validation)
    assert made.status is Status.RUNTIME_ERROR
    assert "illegal memory access" in str(made.error)
    assert any("context unusable" in str(c.reason) for c in made.not_run)
    write(lab, "v1", "softmax_right")
    assert lab.validate("softmax", "v1", plan="quick").passed


def test_an_endless_kernel_is_killed_and_the_next_job_works(lab: Lab) -> None:
    lab.write("softmax", "v9", ENDLESS)
    lab.settings.silence_s = 4.0
    made = lab.validate("softmax", "v9")
    lab.settings.silence_s = 20.0
    assert isinstance(made, Validation)
    assert made.status is Status.TIMEOUT
    assert [c.status for c in made.failed_cases] == [CaseStatus.TIMEOUT]
    assert lab.validate("softmax", "v1", plan="quick").passed
