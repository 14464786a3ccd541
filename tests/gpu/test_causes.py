"""The explanation of a failure on a GPU: its cause, its line, the findings of compute-sanitizer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, job_for
from triton_magics.execution.local import gpu_detection
from triton_magics.harness.profiling import sanitizer
from triton_magics.lab import Lab
from triton_magics.model import Case, CaseStatus, Validation

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "kernels"
CODES = {
    "tf32": "lower_precision",
    "missing mask": "missing_mask",
    "missing other": "wrong_fill",
    "wrong stride": "wrong_stride",
    "half accumulation": "lower_precision",
    "missing scale": "wrong_formula",
    "part of a sum": "partial_extent",
    "race": "not_deterministic",
}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        lab.op("vector_add")
        lab.op("softmax")
        yield lab


def test_eight_faults_have_their_causes() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    process = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "causes.py")],
        capture_output=True, text=True, check=True, timeout=120,
        env={**environment, "PYTHONPATH": f"{ROOT}:{environment.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    explanations = json.loads(process.stdout)
    wrong = {
        name: explanation
        for name, explanation in explanations.items()
        if explanation["status"] != "wrong_values" or CODES[name] != explanation["cause"]
    }
    assert wrong == {}
    assert explanations["race"]["deterministic"] is False


def test_error_names_the_line_of_a_store_out_of_bounds(lab: Lab) -> None:
    source = (KERNELS / "forgets_the_mask.py").read_text()
    lab.write("vector_add", "v1", source)
    validation = lab.validate("vector_add", "v1", shapes=[(7, 13)], dtypes=["float32"])
    assert isinstance(validation, Validation)
    first = validation.failed_cases[0]
    assert first.status is CaseStatus.OUT_OF_BOUNDS
    if any("was not searched" in note for note in lab.notes()):
        pytest.skip("Triton's interpreter does not run with this numpy")
    assert first.error is not None
    assert first.error.kind == "OutOfBounds"
    assert "outside" in first.error.message
    assert "tl." in str(first.error.code)
    assert lab.validation("vector_add", "v1") == validation


def test_work_of_torch_beside_the_kernel_is_refused(lab: Lab) -> None:
    right = (KERNELS / "softmax_right.py").read_text()
    lab.write("softmax", "v1", right)
    validation = lab.validate("softmax", "v1", plan="quick", dtypes=["float32"])
    assert isinstance(validation, Validation)
    assert validation.computed_by is not None
    assert (validation.computed_by.kernel_share, validation.torch_ops) == (1.0, ("clone",))
    lab.write("softmax", "v2", right.replace("return out.view", "return out.neg().neg().view"))
    helped = lab.validate("softmax", "v2", plan="quick", dtypes=["float32"])
    assert isinstance(helped, Validation)
    assert set(helped.torch_ops) == {"neg", "clone"}
    assert {c.status for c in helped.failed_cases} == {CaseStatus.NOT_TRITON}
    assert helped.computed_by is not None
    assert helped.computed_by.kernel_share == pytest.approx(0.6)  # two of five operations


SANITIZER = pytest.mark.skipif(
    shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin") is None,
    reason="no compute-sanitizer",
)


@SANITIZER
@pytest.mark.parametrize(
    ("tool", "op", "path", "text"),
    [
        ("memcheck", "vector_add", KERNELS / "forgets_the_mask.py", "Invalid __global__ write"),
        ("racecheck", "relu", HERE / "race.py", "Race reported between Write access"),
        ("initcheck", "relu", HERE / "unset.py", "Uninitialized __global__ memory read"),
    ],
)
def test_each_tool_reports_its_fault_with_its_line(
    tool: str, op: str, path: Path, text: str
) -> None:
    program = sanitizer._program()
    assert program
    report = sanitizer._run(
        program, tool, job_for(path), Case(shape=(7, 130), dtype="float32", seed=1)
    )
    assert (report.n_errors or 0) > 0, report
    assert report.findings[0].startswith(text)
    assert "in v1_baseline.py:" in report.findings[0]  # the version's own file


@SANITIZER
def test_no_tool_reports_a_right_kernel(lab: Lab) -> None:
    lab.write("vector_add", "v2", (KERNELS / "vector_add_right.py").read_text())
    right = lab.validate(
        "vector_add", "v2", shapes=[(7, 13)], dtypes=["float32"], sanitize=True, timeout=300
    )
    assert isinstance(right, Validation)
    assert [(s.tool, s.n_errors) for s in right.sanitized] == [
        ("memcheck", 0), ("racecheck", 0), ("initcheck", 0),
    ]  # fmt: skip
