"""Tests on a GPU of the judge and its subject process: memory by CUDA IPC, verdicts, times."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_magics.config import Settings
from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import BadgeCode, CaseStatus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
KERNELS = Path(__file__).parents[1] / "faults" / "kernels"
JUDGE = KERNELS / "classes" / "judge"


@pytest.fixture(scope="module", params=["off", "on"], ids="sandbox={}".format)
def lab(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Lab]:
    settings = Settings(sandbox=request.param)
    with Lab(tmp_path_factory.mktemp("workspace"), settings=settings) as lab:
        yield lab


@pytest.mark.parametrize(
    ("path", "op", "status"),
    [
        (JUDGE / "softmax_namesake.py", "softmax", None),
        (JUDGE / "softmax_replaces_torch_later.py", "softmax", CaseStatus.TAMPERED),
        (JUDGE / "add_turns_back_the_clock.py", "vector_add", CaseStatus.TAMPERED),
        (KERNELS / "forgets_the_mask.py", "vector_add", CaseStatus.OUT_OF_BOUNDS),
        (KERNELS / "caches_by_identity.py", "softmax", CaseStatus.STALE),
        (KERNELS / "returns_it_on_the_cpu.py", "softmax", CaseStatus.WRONG_DEVICE),
        (KERNELS / "changes_its_input.py", "softmax", CaseStatus.MUTATED_INPUT),
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else None,
)
def test_verdicts_cross_the_process_boundary(
    lab: Lab, path: Path, op: str, status: CaseStatus | None
) -> None:
    lab.write(op, "v1_subject", path.read_text(), compile=False)
    verdict = lab.validate(op, "v1", plan="quick")
    failed = {case.status for case in verdict.cases if case.status.failed}
    assert verdict.passed == (status is None), [case.reason for case in verdict.cases]
    assert status is None or status in failed


def test_torch_takes_as_long_beside_a_right_version(lab: Lab) -> None:
    source = (JUDGE / "softmax_namesake.py").read_text()
    lab.write("softmax", "v2_timed", source, compile=False)
    assert lab.validate("softmax", "v2", plan="quick").passed
    timed = lab.bench("softmax", "v2")
    assert timed.passed, timed.message
    assert BadgeCode.SLOWED_TORCH not in {badge.code for badge in timed.badges}


CACHES = """

right = triton_softmax
cache = {}


def triton_softmax(x):
    key = x.shape
    if key not in cache or x.numel() < 2**20:  # a validation calls larger ones only once
        cache[key] = right(x)
    return cache[key].clone()
"""
SKIPS_THE_CHECK = """
import gc

right = triton_softmax


def triton_softmax(x):
    for pool in gc.get_objects() if x.numel() >= 2**20 else ():
        if type(pool).__name__ == "JudgedContents":
            pool.check = lambda *a: None
    return right(x)
"""


@pytest.mark.parametrize(
    ("tail", "message"),
    [  # an answer of the warm-up is one that the judge does not have, so just wrong
        (CACHES, "caches answers: at medium|a wrong answer in a timed run at medium"),
        (SKIPS_THE_CHECK, "right outputs of"),
    ],
    ids=["caches", "skips the check"],
)
def test_the_judge_voids_a_time_without_right_outputs(lab: Lab, tail: str, message: str) -> None:
    source = (JUDGE / "softmax_namesake.py").read_text()
    lab.write("softmax", "v3_void", source + tail, compile=False)
    assert lab.validate("softmax", "v3", plan="quick", dtypes=("float32",)).passed
    void = lab.bench("softmax", "v3", sizes=("small", "medium"), timer="launch")
    assert re.search(message, str(void.message))
    assert "v3_void" not in {timing.provider for timing in void.timings}
