"""Tests of compiling ahead: a version's first compilation prepares its validation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton.compiler.compiler import CompiledKernel

from tests.harness.kit import KERNELS, job_for, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import CompileJob
from triton_magics.harness import compile_ahead, compile_job
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.languages.kernel_compiler import Target

ROOT = KERNELS.parents[2]
# Compile a version as `write` has it compiled, on four cores; or list the work that is left.
CHILD = """
import json, os, sys
from pathlib import Path
import triton
from triton_magics import operators
from triton_magics.execution.job_requests import CompileJob, OpRef, PlanJob
from triton_magics.harness import compile_ahead, compile_job
from triton_magics.harness.process import compile_processes, fork_server
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.load import compile_cache, load_version
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from tests.harness.kit import Recorder, version_of

what, path, least_s = sys.argv[1:]
assert compile_job.MIN_END_S
compile_job.MIN_END_S = float(least_s)
fork_server.import_all_modules()
os.cpu_count = lambda: 4
op, own, ref = operators.load("softmax"), OpRef(name="softmax"), version_of(Path(path), "softmax")
asked = PlanJob(op=own, plan="quick", own_shapes=((5, 4000),), seed=3, device_kind="gpu")
forms = compile_ahead.input_forms(plan_cases(op, asked, DeviceFacts()).cases)
if what == "write":
    compile_processes.start_compile_processes(compile_ahead.compile_order)
    job = CompileJob(op=own, version=ref, ahead="quick", own_shapes=((5, 4000),))
    report = Recorder()
    made, _ = compile_job.run(job, report)
    compile_processes.wait_for_exit()
    assert report.compilations == [made]  # sent before the others were compiled
    print(json.dumps([made.status, sorted(k.size for k in made.kernels), len(forms)]))
else:
    hits = []
    triton.knobs.compilation.listener = lambda *, cache_hit, **more: hits.append(cache_hit)
    kernel_runtime().use_target(Target(90))
    with compile_cache((ref,)), fake_gpu(compile_ahead.META):
        version = load_version(ref)
        ahead = compile_ahead.AheadCompilation(own, ref, forms, Target())
        other = compile_ahead.AheadCompilation(own, ref, forms, Target(measured_sms=7))
        left = list(ahead._marks)
        with kernel_runtime().compile_only():
            for form in set(forms) - set(left):
                compile_ahead.compile_form(op, version, form)
    print(json.dumps([left, any(hits), hits.count(False), len(other._marks)]))
"""
HANGS = """

right = triton_softmax


def triton_softmax(x):
    if x.dtype == torch.bfloat16:
        import signal
        signal.pause()
    return right(x)
"""


def child(name: str, path: Path, cache: Path, *, least_s: float = 600.0) -> Any:
    """Return the result of a child process; delete its Triton cache."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    folder = cache / name
    process = subprocess.run(
        [sys.executable, "-c", CHILD, name, str(path), str(least_s)], capture_output=True,
        text=True, check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(folder), "TRITON_MAGICS_CACHE": str(cache / "shared"),
             "TRITON_MAGICS_PARENT": name},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    shutil.rmtree(folder)
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_validation_reuses_kernels_of_an_earlier_child(
    tmp_path: Path,
) -> None:
    path = KERNELS / "softmax_right.py"
    status, sizes, n_forms = child("write", path, tmp_path)
    assert (status, sizes) == ("passed", ["large", "small"])
    assert child("validate", path, tmp_path) == [[], True, 0, n_forms]


@pytest.mark.in_turn
def test_an_endless_compile_form_delays_no_other_version(
    tmp_path: Path,
) -> None:
    path = tmp_path / "v1_hangs.py"
    path.write_text((KERNELS / "softmax_right.py").read_text() + HANGS)
    status, sizes, _ = child("write", path, tmp_path, least_s=0.2)
    assert (status, sizes) == ("passed", ["large", "small"])
    left, _, compiled, _ = child("validate", path, tmp_path)
    assert {dtype for _, dtype, *_ in left} >= {"bfloat16"}
    assert compiled == 0
    assert [[256, 256], "float32", [], []] not in left


def test_a_kernel_compiled_by_hand_is_not_launched_without_data() -> None:
    kernel, original = object.__new__(CompiledKernel), CompiledKernel.run
    with kernel_runtime().compile_only():
        assert kernel.run(1, 1, 1, 0) is None
    assert CompiledKernel.run is original
    with pytest.raises(AttributeError):  # without the context its own launcher is used
        kernel.run(1, 1, 1, 0)


def test_a_full_plan_on_a_gpu_takes_a_worker_that_can_compile() -> None:
    path = KERNELS / "softmax_right.py"
    quick, full, thorough = (job_for(path, plan=p) for p in ("quick", "full", "thorough"))
    assert [j.needs_new_worker("gpu") for j in (quick, full, thorough)] == [False, True, True]
    assert not full.needs_new_worker("interpreter")


def test_the_longest_row_is_compiled_first() -> None:
    ref = version_of(KERNELS / "softmax_right.py", "softmax")
    job = CompileJob(op=OpRef(name="softmax"), version=ref, ahead="quick")
    background = compile_job._BackgroundCompilation(job, operators.load("softmax"), Target(90), [])
    rows = [shape[-1] for shape, *_ in background._later_forms()]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] == 4097  # of 3 rows: it takes twice as long as 4096 x 4096


def test_long_rows_are_begun_early_beside_the_first_forms() -> None:
    rows = [(7, 13), (1, 1000), (3, 8209), (32, 1), (17, 16_391), (2, 151_936)]
    forms = [(shape, "float32", (), ()) for shape in rows]
    ordered = compile_ahead.begin_long_ones_early(forms, brief={forms[-1]})
    assert [form[0] for form in ordered] == [
        (7, 13), (17, 16_391), (1, 1000), (3, 8209), (32, 1), (2, 151_936),
    ]  # fmt: skip
