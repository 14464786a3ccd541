"""A job carries its sources: it runs in any process, in any folder."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.harness.kit import KERNELS, run_validation, version_of
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import RunJob, ValidateJob
from triton_magics.harness import job_sources
from triton_magics.harness.load import LoadError, load_version, make_kernel_error
from triton_magics.model import Validation

ELSEWHERE = """
import sys
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import validate_job
from tests.harness.kit import Recorder

job = ValidateJob.model_validate_json(open(sys.argv[1]).read())
print(validate_job.run(job, Recorder())[0].model_dump_json())
"""
DOUBLE = """
def reference(x):
    return x + x

def make_inputs(shape, dtype, device, generator):
    import torch
    return (torch.randn(shape, generator=generator, device=device).to(dtype),)
"""
SHAPES = ((7, 13), (3, 17))
RAISES = '# a header\nimport triton\n\nraise RuntimeError("no")\n'


@pytest.mark.parametrize(
    "kernel", [pytest.param("softmax_right", marks=pytest.mark.slow), "forgets_other"]
)
@pytest.mark.in_turn
def test_a_job_file_gives_the_same_verdict_elsewhere(kernel: str, tmp_path: Path) -> None:
    path = KERNELS / f"{kernel}.py"
    here = run_validation(path, dtypes=("float32",), shapes=SHAPES)
    op = here.op
    version = version_of(path, op)
    job = ValidateJob(
        op=OpRef(name=op), version=version, seed=7, dtypes=("float32",), shapes=SHAPES
    )
    (tmp_path / "job.json").write_text(job.model_dump_json())
    there = Validation.model_validate_json(_run_elsewhere(tmp_path / "job.json"))
    assert [(c.case, c.status) for c in there.cases] == [(c.case, c.status) for c in here.cases]
    assert there.status is here.status


def _run_elsewhere(job: Path) -> str:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, str(job)], cwd=job.parent, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": root, "TRITON_INTERPRET": "1"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_a_job_holds_no_path_of_this_machine(tmp_path: Path) -> None:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    job = RunJob(op=OpRef.own("double", DOUBLE), version=ref)
    assert str(KERNELS) not in job.model_dump_json()
    assert str(tmp_path) not in job.model_dump_json()


def test_a_source_that_does_not_match_its_hash_is_refused() -> None:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    with pytest.raises(ValidationError, match="does not match its sha256"):
        VersionRef(**{**ref.model_dump(), "source": ref.source + "# more\n"})
    with pytest.raises(ValidationError, match="does not match its sha256"):
        OpRef(name="double", source=DOUBLE, sha256="0" * 64)


def test_an_error_names_the_users_file_and_line() -> None:
    body = RAISES.partition("\n")[2]
    ref = VersionRef(
        version="v2", attempt=1, source=RAISES, sha256=hashlib.sha256(body.encode()).hexdigest(),
        entry="solve", header_lines=1, cell_offset=1, shown_path="kernels/relu/v2.py",
    )  # fmt: skip
    with pytest.raises(LoadError) as raised:
        load_version(ref)
    error = make_kernel_error(raised.value, ref)
    assert (error.line, error.cell_line, error.file_line) == (3, 4, 4)
    assert error.file == "kernels/relu/v2.py"
    assert 'File "kernels/relu/v2.py", line 4' in error.traceback
    assert job_sources.SOURCES not in error.traceback


def test_texts_of_one_version_lie_in_different_files(tmp_path: Path) -> None:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    (tmp_path / "softmax_right.py").write_text(ref.source + "\n")
    other = version_of(tmp_path / "softmax_right.py", "softmax")
    first, second = job_sources.write_version(ref), job_sources.write_version(other)
    assert first != second
    assert (first.read_text(), second.read_text()) == (ref.source, other.source)


def test_a_file_that_code_under_test_has_changed_is_written_anew() -> None:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    job_sources.write_version(ref).write_text("scribble")
    assert job_sources.write_version(ref).read_text() == ref.source
