"""Kernel languages: found by name, used by the harness, unknown to it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.kit import Recorder
from tests.languages.numpy_language import LANGUAGE
from triton_magics import languages
from triton_magics.errors import AmbiguousEntry, UnknownName
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import BenchJob, CompileJob, ReplayJob, ValidateJob
from triton_magics.harness import compile_job
from triton_magics.harness.correctness import locate_job, validate_job
from triton_magics.harness.timing import bench_job
from triton_magics.model import Case, CaseStatus, Status

ROOT = Path(__file__).parents[2]
BUILT_IN = languages.names()
RIGHT = """\
import numpy as np
import torch
from tests.languages.numpy_language import kernel


@kernel
def relu_kernel(x, out):
    np.maximum(x, 0, out=out)


def numpy_relu(x):
    out = torch.empty_like(x)
    relu_kernel(x.numpy(), out.numpy())
    return out
"""
WRONG = RIGHT.replace("np.maximum(x, 0, out=out)", "np.abs(x, out=out)")
TORCH = RIGHT.replace("relu_kernel(x.numpy(), out.numpy())", "out.copy_(x.clamp(min=0))")
IGNORED = RIGHT.replace("    return out\n", "    return x.clamp(min=0)\n")


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    languages.register(LANGUAGE)
    yield
    languages.unregister("numpy")


def ref(source: str) -> VersionRef:
    return VersionRef(
        version="v1",
        attempt=1,
        source=source,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=languages.get("numpy").parse(source, op="relu").name,
        header_lines=0,
        cell_offset=0,
        shown_path="kernels/relu/v1.py",
        language="numpy",
    )


@pytest.mark.parametrize(
    ("source", "status", "reason"),
    [
        (RIGHT, CaseStatus.PASSED, None),
        (WRONG, CaseStatus.WRONG_VALUES, None),
        (TORCH, CaseStatus.NOT_TRITON, "no NumPy kernel ran"),
        (IGNORED, CaseStatus.NOT_TRITON, "torch computes 100 % of the work (clamp)"),
    ],
)
@pytest.mark.in_turn
def test_a_version_in_a_toy_language_is_validated(
    source: str, status: CaseStatus, reason: str | None
) -> None:
    job = ValidateJob(op=OpRef(name="relu"), version=ref(source), dtypes=("float32",), seed=1)
    result, _ = validate_job.run(job.evolve(plan="quick"), Recorder())
    ran = [case for case in result.cases if case.status is not CaseStatus.NOT_RUN]
    assert (result.status is Status.PASSED) is (status is CaseStatus.PASSED)
    assert status in {case.status for case in ran}
    if reason:
        assert any(case.reason and reason in case.reason for case in ran)
    else:
        assert result.triton_kernels == ("relu_kernel",)


def test_a_version_in_a_toy_language_is_timed() -> None:
    job = BenchJob(
        op=OpRef(name="relu"), versions=(ref(RIGHT),), sizes=("small",), runs=2, dtype="float32",
        seed=1, budget_s=10,
    )  # fmt: skip
    result, _ = bench_job.run(job, Recorder())
    assert [timing.provider for timing in result.timings] == ["v1"]


def test_a_toy_language_has_no_static_figures_and_no_bounds() -> None:
    compiled, _ = compile_job.run(
        CompileJob(op=OpRef(name="relu"), version=ref(RIGHT), sizes=("small",)), Recorder()
    )
    assert compiled.kernels == ()
    assert compiled.note == "NumPy compiles nothing ahead"
    case = Case(shape=(8, 8), dtype="float32", seed=1)
    job = ReplayJob(op=OpRef(name="relu"), version=ref(RIGHT), case=case)
    replayed, _ = locate_job.run(job, Recorder())
    assert replayed.note == "no access outside a tensor was found, and no race"


def test_a_module_without_the_parsed_entry_is_a_failed_version() -> None:
    version = ref(RIGHT).evolve(entry="numpy_other")
    job = ValidateJob(op=OpRef(name="relu"), version=version, plan="quick", seed=1)
    verdict, _ = validate_job.run(job, Recorder())
    assert verdict.status is Status.RUNTIME_ERROR
    assert verdict.error is not None
    assert verdict.error.message == "the module defines no numpy_other, the entry of its source"


def test_a_registered_language_is_listed() -> None:
    assert languages.names() == (*BUILT_IN, "numpy")
    with pytest.raises(UnknownName, match=", ".join(languages.names())):
        languages.get("nunpy")


def test_a_language_is_found_by_its_entry_point(tmp_path: Path) -> None:
    folder = tmp_path / "toy-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    (folder / "entry_points.txt").write_text(
        f"[{languages.GROUP}]\nnumpy = tests.languages.numpy_language:LANGUAGE\n"
    )
    code = (
        f"import sys; sys.path.append({str(tmp_path)!r})\n"
        "from triton_magics import languages\n"
        "print(languages.names(), languages.get('numpy').title, 'torch' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert process.stdout.strip() == f"{(*BUILT_IN, 'numpy')} NumPy False"


def test_the_language_decides_the_entry() -> None:
    with pytest.raises(AmbiguousEntry, match="numpy_relu"):
        languages.get("numpy").parse("def one(x): pass\ndef two(x): pass\n", op="relu")


# Names of the product, of the model's older fields, and of a module of torch's own.
ALLOWED = (
    r"triton[_-]magics", "not_triton", "triton_kernels", "triton_share", "codegen.triton",
    '"triton": facts.version', "triton=name in own",
)  # fmt: skip


def test_the_harness_names_no_language() -> None:
    allowed = re.compile("|".join(ALLOWED), re.I)
    for path in (ROOT / "triton_magics" / "harness").rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            left = allowed.sub("", line).lower()
            assert "triton" not in left, f"{path.name}:{number}: {line.strip()}"
            assert "languages.triton" not in line
