"""What is said of a failure on a GPU: causes told apart, lines named, compute-sanitizer heard."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.harness import KERNELS, job_for
from triton_magics.engine import gpu
from triton_magics.lab import Lab
from triton_magics.model import Case, CaseStatus, Validation
from triton_magics.worker import sanitize

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "kernels"
WORDS = {
    "tf32": "TF32",
    "missing mask": "a load without a mask on line",
    "missing other": "`other=` is missing on line",
    "wrong stride": "an index uses the wrong stride",
    "half accumulation": "adding up in half precision",
    "missing scale": "everything is 2 times what it should be",
    "race": "a race",
}
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(gpu.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"),
]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as made:
        made.op("vector_add")
        made.op("softmax")
        yield made


def test_seven_faults_are_told_apart() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    told_by = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "gpu" / "causes.py")],
        capture_output=True, text=True, check=True, timeout=120,
        env={**environment, "PYTHONPATH": f"{ROOT}:{environment.get('PYTHONPATH', '')}"},
    )  # fmt: skip
    told = json.loads(told_by.stdout)
    wrong = {
        name: said
        for name, said in told.items()
        if said["status"] != "wrong_values" or WORDS[name] not in str(said["cause"])
    }
    assert wrong == {}
    assert told["race"]["deterministic"] is False


def test_a_store_outside_on_a_gpu_is_named_with_its_line(lab: Lab) -> None:
    source = (KERNELS / "forgets_the_mask.py").read_text()
    lab.write("vector_add", "v1", source)
    made = lab.validate("vector_add", "v1", shapes=[(7, 13)], dtypes=["float32"])
    assert isinstance(made, Validation)
    first = made.failed_cases[0]
    assert first.status is CaseStatus.OUT_OF_BOUNDS
    if any("could not be looked for" in note for note in lab.notes()):
        pytest.skip("Triton's interpreter does not run with this numpy")
    assert first.error is not None
    assert first.error.kind == "OutOfBounds"
    assert "outside" in first.error.message
    assert "tl." in str(first.error.code)
    assert lab.validation("vector_add", "v1") == made


def test_all_of_a_kernels_time_is_tritons_and_half_of_it_where_torch_helps(lab: Lab) -> None:
    right = (KERNELS / "softmax_right.py").read_text()
    lab.write("softmax", "v1", right)
    made = lab.validate("softmax", "v1", plan="quick", dtypes=["float32"])
    assert isinstance(made, Validation)
    assert (made.triton_share, made.torch_ops) == (1.0, ("clone",))
    lab.write("softmax", "v2", right.replace("return out.view(x.shape)", "return out.neg().neg()"))
    helped = lab.validate("softmax", "v2", shapes=[(4096, 4096)], dtypes=["float32"])
    assert isinstance(helped, Validation)
    assert helped.torch_ops == ("neg",)
    assert helped.triton_share is None  # no size was run
    sized = lab.validate("softmax", "v2", plan="quick", dtypes=["float32"])
    assert isinstance(sized, Validation)
    assert sized.triton_share is not None
    assert 0.2 < sized.triton_share < 0.6  # three passes over memory, one of them Triton's


SANITIZER = pytest.mark.skipif(
    shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin") is None,
    reason="no compute-sanitizer",
)


@SANITIZER
@pytest.mark.parametrize(
    ("tool", "op", "path", "said"),
    [
        ("memcheck", "vector_add", KERNELS / "forgets_the_mask.py", "Invalid __global__ write"),
        ("racecheck", "relu", HERE / "race.py", "Race reported between Write access"),
        ("initcheck", "relu", HERE / "unset.py", "Uninitialized __global__ memory read"),
    ],
)
def test_each_tool_finds_its_fault_with_its_line(tool: str, op: str, path: Path, said: str) -> None:
    program = sanitize._program()
    assert program
    found = sanitize._run(
        program, tool, job_for(path), Case(shape=(7, 130), dtype="float32", seed=1)
    )
    assert (found.n_errors or 0) > 0, found
    assert found.findings[0].startswith(said)
    assert f"in {path.name}:" in found.findings[0]


@SANITIZER
def test_no_tool_finds_anything_in_a_right_kernel(lab: Lab) -> None:
    lab.write("vector_add", "v2", (KERNELS / "vector_add_right.py").read_text())
    right = lab.validate(
        "vector_add", "v2", shapes=[(7, 13)], dtypes=["float32"], sanitize=True, timeout=300
    )
    assert isinstance(right, Validation)
    assert [(s.tool, s.n_errors) for s in right.sanitized] == [
        ("memcheck", 0), ("racecheck", 0), ("initcheck", 0),
    ]  # fmt: skip
