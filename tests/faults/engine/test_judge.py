"""A version that reaches for its judge is refused, and a right one beside it passes.

Each runs in a real worker: the judge is another process there. In a test's own process the same
kernels would share it with their judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.class_kernels import read_kernel
from triton_magics import operators
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Validation

CLASSES = Path(__file__).parents[1] / "kernels" / "classes"
SLOW = ("add_looks_at_itself", "layer_norm_hunts_in_the_heap")  # 20 and 50 s: a walk a call
JUDGE = sorted((CLASSES / "judge").glob("*.py"))
SIDE_EFFECTS = [
    CLASSES / "leftovers" / f"{name}.py"
    for name in ("sum_default_dtype", "mean_collector_off", "gelu_python_seed", "sum_environment")
]
RIGHT = (CLASSES / "judge" / "softmax_namesake.py").read_text()
FORGED = '''
import os, socket, struct

def tell(fd):
    body = b'{"type": "reply", "nonce": "", "retire": false, "answer": {"kind": "validation"}}'
    try:
        os.write(fd, struct.pack(">I", len(body) + 1) + b"R" + body)
    except OSError:
        pass

original = triton_softmax

def triton_softmax(x):
    for fd in range(3, 1024):
        tell(fd)
    return original(x) * 1.5
'''  # fmt: skip
SEARCHES = '''
import ctypes, gc, os, sys
original = triton_softmax

def triton_softmax(x):
    judge = os.getppid()
    try:
        with open(f"/proc/{judge}/mem", "rb"):
            readable = os.getuid() != 0  # root may read every process
    except OSError:
        readable = False
    tensors = [t for t in gc.get_objects() if type(t) is torch.Tensor and t.dtype is torch.float64]
    frame, names = sys._getframe(), set()
    while frame:
        names |= {*frame.f_locals}
        frame = frame.f_back
    if readable or tensors or names & {"op", "pristine", "torch_outputs", "expected"}:
        return x.softmax(-1)
    return original(x) * 1.5
'''  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        with Lab(tmp_path_factory.mktemp("workspace")) as lab:
            yield lab


def validate(lab: Lab, op: str, source: str) -> Validation:
    lab.write(op, "v1_reaching", source, compile=False)
    return lab.validate(op, "v1", shapes=operators.load(op).shapes[:3], dtypes=("float32",), seed=7)


def statuses(verdict: Validation) -> set[CaseStatus]:
    return {case.status for case in verdict.cases if case.status.failed}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.slow if p.stem in SLOW else ()) for p in JUDGE],
    ids=lambda path: path.stem,
)
def test_a_version_that_reaches_for_its_judge_is_refused(lab: Lab, path: Path) -> None:
    kernel = read_kernel(path)
    verdict = validate(lab, kernel.op, path.read_text())
    if verdict.passed and not kernel.is_right:  # its fault needs other values than these
        verdict = lab.validate(kernel.op, "v1", dtypes=("float32",), seed=7)
    assert verdict.passed == kernel.is_right, [c.reason for c in verdict.cases]


def test_what_a_version_replaced_is_named(lab: Lab) -> None:
    verdict = validate(
        lab, "softmax", (CLASSES / "judge/softmax_replaces_torch_later.py").read_text()
    )
    reasons = " ".join(case.reason or "" for case in verdict.cases)
    assert CaseStatus.TAMPERED in statuses(verdict)
    assert "torch.softmax" in reasons


@pytest.mark.parametrize("path", SIDE_EFFECTS, ids=lambda path: path.stem)
def test_a_setting_that_a_version_leaves_changed_is_a_fault(lab: Lab, path: Path) -> None:
    verdict = validate(lab, read_kernel(path).op, path.read_text())
    assert CaseStatus.SIDE_EFFECT in statuses(verdict), [c.reason for c in verdict.cases]


def test_a_forged_answer_on_every_descriptor_is_no_verdict(lab: Lab) -> None:
    verdict = validate(lab, "softmax", RIGHT + FORGED)
    assert not verdict.passed


def test_a_replaced_reporter_reports_nothing_else(lab: Lab) -> None:
    reporter = "\nfrom triton_magics.harness.process.reporter import Reporter as R\n"
    verdict = validate(
        lab, "softmax", f"{RIGHT}{reporter}R.case = R._send = lambda *a, **k: None\n"
    )
    assert statuses(verdict) == {CaseStatus.TAMPERED}
    assert "Reporter.case" in str(verdict.cases[0].reason)


@pytest.mark.in_turn
def test_expected_values_are_not_in_the_process_of_a_version(lab: Lab) -> None:
    verdict = validate(lab, "softmax", RIGHT + SEARCHES)
    assert CaseStatus.WRONG_VALUES in statuses(verdict), [c.reason for c in verdict.cases]
