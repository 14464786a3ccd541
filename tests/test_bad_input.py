# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Tests of bad kernels on the real executor: status, message, line, and nothing lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from tests.execution_kit import (  # noqa: F401 (limits_clock: a fixture)
    LIMITS,
    PAST_SILENCE_S,
    LimitsClock,
    limits_clock,
)
from triton_magics import rendering
from triton_magics.config import Settings
from triton_magics.errors import Unavailable
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Status, Validation

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK_SIZE=1024)
    return out
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = Settings(device="interpreter", validate_budget_s=3.0, **LIMITS)
    with Lab(tmp_path_factory.mktemp("workspace"), settings=settings) as lab:
        lab.op("relu")
        yield lab


def validate(lab: Lab, old: str, new: str) -> Validation:
    """Validate a version with one text replaced."""
    assert old in KERNEL
    lab.write("relu", "v2", KERNEL.replace(old, new), cell_offset=1, compile=False)
    validation = lab.validate("relu", "v2", shapes=[(7, 13)], dtypes=["float32"])
    assert isinstance(validation, Validation)
    assert lab.validation("relu", "v2") == validation
    return validation


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("return out", "return out.view(-1)", CaseStatus.WRONG_SHAPE, "should be [7, 13]"),
        ("return out", "return out.double()", CaseStatus.WRONG_DTYPE, "should be torch.float32"),
        ("x < 0", "x < 1", CaseStatus.WRONG_VALUES, "elements wrong"),
        ("return out", "return [out]", CaseStatus.WRONG_TYPE, "returned a list"),
    ],
)
@pytest.mark.in_turn
def test_wrong_output_names_the_expected_one(
    lab: Lab, old: str, new: str, status: CaseStatus, words: str
) -> None:
    validation = validate(lab, old, new)
    assert validation.status is Status.FAILED
    assert [c.status for c in validation.failed_cases] == [status]
    shown = "\n".join(rendering.failure_lines(validation))
    assert words in shown
    assert "replay: validate relu v2" in shown


@pytest.mark.parametrize(
    ("death", "words"),
    [
        ("os._exit(0)", "exit code 0"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_dead_process_is_crashed(lab: Lab, death: str, words: str) -> None:
    validation = validate(lab, "return out", f"import os; {death}")
    assert validation.status is Status.CRASHED
    assert words in str(validation.message)
    assert [c.status for c in validation.failed_cases] == [CaseStatus.CRASHED]


def test_endless_call_times_out_with_its_stage(lab: Lab, limits_clock: LimitsClock) -> None:
    lab.on_progress = limits_clock.after("validating 7x13 float32", PAST_SILENCE_S)
    validation = validate(lab, "return out", "while True: pass")
    lab.on_progress = None
    assert validation.status is Status.TIMEOUT
    assert "validating 7x13 float32" in str(validation.message)


def test_exception_names_the_line_in_cell_and_file(lab: Lab) -> None:
    validation = validate(lab, "out = torch.empty_like(x)", "out = torch.empty_like(y)")
    assert validation.status is Status.RUNTIME_ERROR
    line = KERNEL.splitlines().index("    out = torch.empty_like(x)") + 1
    assert validation.error is not None
    assert (validation.error.line, validation.error.cell_line) == (line, line + 1)
    assert validation.error.file_line == line + lab.source("relu", "v2").header_lines
    shown = "\n".join(rendering.failure_lines(validation))
    assert f"cell line {line + 1} · kernels/relu/v2_tiling.py:{validation.error.file_line}" in shown
    assert "name 'y' is not defined" in shown


def test_import_error_names_its_line(lab: Lab) -> None:
    validation = validate(lab, "import torch\n", "import torch\nimport no_such_module\n")
    assert validation.status is Status.RUNTIME_ERROR
    assert validation.error is not None
    assert validation.error.line == 3
    assert "no_such_module" in validation.error.message


def test_compile_error_without_a_gpu(lab: Lab) -> None:
    broken = KERNEL.replace("tl.where(x < 0, 0.0, x)", "tl.dot(x, x)")
    result = lab.write("relu", "v3", broken, cell_offset=1)
    assert result.status is Status.COMPILE_ERROR
    assert result.compilation is not None
    assert result.compilation.error is not None
    line = broken.splitlines().index("    tl.store(out_ptr + offsets, tl.dot(x, x), mask=mask)") + 1
    assert result.compilation.error.cell_line == line + 1
    assert lab.source("relu", "v3").source == broken


def test_right_version_passes_after_faults_and_attempts_remain(lab: Lab) -> None:
    lab.write("relu", "v1", KERNEL, compile=False)
    validation = lab.validate("relu", "v1", shapes=[(7, 13)], dtypes=["float32"])
    assert isinstance(validation, Validation)
    assert validation.passed, validation
    attempts = lab.attempts("relu", "v2")
    assert [s.attempt for s in attempts] == list(range(1, len(attempts) + 1))


def test_requested_gpu_that_is_missing_is_an_error(tmp_path: Path) -> None:
    if any(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("there is a GPU here")
    with Lab(tmp_path, settings=Settings(device="gpu")) as lab:
        lab.op("relu")
        lab.write("relu", "v1", KERNEL, compile=False)
        with pytest.raises(Unavailable, match="interpreter"):
            lab.validate("relu", "v1")


READ_ONLY = """
import os, sys
from triton_magics.lab import Lab
from triton_magics.errors import WorkspaceError
import triton_magics.execution.local.executor, triton_magics.store, sqlite3, triton_magics.knowledge
triton_magics.knowledge.shipped()
os.setuid(65534)
with Lab(sys.argv[1]) as lab:
    print(lab.versions("relu"), lab.source("relu", "v1").attempt)
    try:
        lab.write("relu", "v2", "def triton_relu(x): return x")
    except WorkspaceError as error:
        print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without rights")
def test_read_only_workspace_is_readable_and_refuses_writes() -> None:
    """Not in pytest's own folder: another session of pytest takes the rights to it away again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Lab(folder) as lab:
            lab.write("relu", "v1", KERNEL, compile=False)
        readable = stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH
        for path in [folder, *folder.rglob("*")]:
            path.chmod(readable | (0o111 if path.is_dir() else 0))
        process = subprocess.run(
            [sys.executable, "-c", dedent(READ_ONLY), name],
            capture_output=True, text=True, check=False, env={**os.environ, "HOME": "/tmp"},
        )  # fmt: skip
    assert "('v1_baseline',) 1" in process.stdout, process.stderr
    assert "can't be written" in process.stdout
