"""A full plan has no compiler work for long on a row in one block; a thorough one has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS
from triton_magics.harness.correctness import case_scheduler
from triton_magics.languages.triton.child.block_size import largest_block

pytestmark = pytest.mark.in_turn

ROOT = KERNELS.parents[2]
# Compile forms of a full plan as a validation does; list the kernels, and why a case is skipped.
CHILD = """
import json, os, sys
from contextlib import nullcontext
from pathlib import Path
from tests.harness.kit import KERNELS, Recorder, job_for
from triton_magics.harness import compile_ahead
from triton_magics.harness.correctness import case_scheduler
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.harness.process import compile_processes, fork_server
from triton_magics.languages.kernel_compiler import Target
from triton_magics.languages.triton.child import block_size
from triton_magics.model import Case
from triton_magics import operators
import torch

path, plan, shapes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
block_size.MAX_ELEMENTS = int(sys.argv[4])
fork_server.import_all_modules()
os.cpu_count = lambda: 2
compile_processes.start_compile_processes(compile_ahead.compile_order)
case_scheduler.local_target = lambda: Target(90)
cases = [Case(shape=s, dtype="float32", extent=name, seed=1) for s, name in shapes]
job = job_for(Path(path), plan=plan)
version = load_version(job.version)
subject = Subject(operators.load("softmax"), version, job, torch.device("cuda"), "")
with case_scheduler.CaseScheduler.create(subject, cases, Recorder(), nullcontext) as scheduler:
    for case in cases:
        scheduler.ahead._work.wait({cases.index(case)})
    reasons = [scheduler.skip_reason(case) for case in cases]
compile_processes.wait_for_exit()
cache = Path(os.environ["TRITON_CACHE_DIR"])
print(json.dumps([reasons, len(list(cache.rglob("*.cubin")))]))
"""
LOOPING = KERNELS / "right" / "softmax_online.py"


def compile_cases(
    tmp_path: Path, path: Path, shapes: object, plan: str = "full", *, max_elements: int = 512
) -> object:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), plan, json.dumps(shapes), str(max_elements)],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path), "TRITON_MAGICS_SCRATCH": str(tmp_path)},
    )  # fmt: skip
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout.splitlines()[-1])


WIDE = [[[2, 280_009], "over 2^18 columns"]]


def test_a_row_in_one_block_is_refused_before_llvm(tmp_path: Path) -> None:
    answer = compile_cases(tmp_path, KERNELS / "softmax_right.py", [*WIDE, [[7, 13], ""]])
    assert answer == [[case_scheduler.LARGE_BLOCK, None], 1]


def test_a_kernel_that_loops_is_compiled_for_any_row(tmp_path: Path) -> None:
    assert compile_cases(tmp_path, LOOPING, WIDE) == [[None], 1]


@pytest.mark.parametrize(
    ("plan", "extent", "reason"),
    [
        ("full", "wide", case_scheduler.LARGE_BLOCK),
        ("thorough", "wide", None),
        pytest.param("full", "", None, marks=pytest.mark.slow),
    ],
)
def test_only_extents_of_a_full_plan_are_refused(
    tmp_path: Path, plan: str, extent: str, reason: str | None
) -> None:
    shapes = [[[2, 280_009], extent]]
    answer = compile_cases(tmp_path, LOOPING, shapes, plan, max_elements=1)
    assert answer == [[reason], int(reason is None)]


@pytest.mark.parametrize(
    ("code", "elements"),
    [
        ("%0 = tt.make_range : tensor<524288xi32>", 524_288),
        ("tensor<64x128xf32> and tensor<32x!tt.ptr<f16>>", 8_192),
        ("tt.load %p : !tt.ptr<f32>", 0),
    ],
)
def test_the_largest_block_of_a_kernel_is_read_from_its_code(code: str, elements: int) -> None:
    assert largest_block(code) == elements
