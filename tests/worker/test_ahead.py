"""What a version's first compilation makes ready for the validation that mostly follows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.worker.harness import KERNELS

ROOT = KERNELS.parents[2]
# Compiles a version as `write` has it compiled, on four cores; or only says what is left to do.
CHILD = """
import json, os, sys
from pathlib import Path
import triton
from triton_magics import ops
from triton_magics.engine.protocol import CompileJob, OpRef, PlanJob
from triton_magics.worker import compile, compilers, precompile, zygote
from triton_magics.worker.cases import plan
from triton_magics.worker.load import compile_cache, load_version
from triton_magics.worker.pretend import StubDriver, pretending
from tests.worker.harness import Recorder, version_of

what, path, least_s = sys.argv[1:]
compile.LEAST_S = float(least_s)
zygote.load_all()
os.cpu_count = lambda: 4
op, own, ref = ops.load("softmax"), OpRef(name="softmax"), version_of(Path(path), "softmax")
asked = PlanJob(op=own, plan="quick", own_shapes=((5, 4000),), seed=3, device_kind="gpu")
forms = precompile.forms_of(plan(op, asked, op.dtypes))
if what == "write":
    compilers.stand_by(precompile.obey)
    job = CompileJob(op=own, version=ref, ahead="quick", own_shapes=((5, 4000),))
    made, _ = compile.run(job, Recorder())
    compilers.end()
    print(json.dumps([made.status, sorted(k.size for k in made.kernels), len(forms)]))
else:
    hits = []
    triton.knobs.compilation.listener = lambda *, cache_hit, **more: hits.append(cache_hit)
    triton.runtime.driver.set_active(StubDriver(90))
    with compile_cache((ref,)), pretending(precompile.META, 90):
        version = load_version(ref)
        ahead = precompile.Ahead(own, ref, forms, precompile.Target())
        other = precompile.Ahead(own, ref, forms, precompile.Target(sm_count=7))
        left = list(ahead._marks)
        with precompile.only_compiling():
            for form in set(forms) - set(left):
                precompile.compile_form(op, version, form)
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


def child(what: str, path: Path, cache: Path, *, least_s: float = 60.0) -> Any:
    """What a child says; its Triton cache is gone when it is."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    folder = cache / what
    told = subprocess.run(
        [sys.executable, "-c", CHILD, what, str(path), str(least_s)], capture_output=True,
        text=True, check=False, cwd=ROOT, timeout=120,
        env={**env, "TRITON_CACHE_DIR": str(folder), "TRITON_MAGICS_CACHE": str(cache / "shared"),
             "TRITON_MAGICS_PARENT": what},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    shutil.rmtree(folder)
    return json.loads(told.stdout.splitlines()[-1])


def test_a_validation_finds_compiled_what_was_written_before_by_a_child_that_is_gone(
    tmp_path: Path,
) -> None:
    path = KERNELS / "softmax_right.py"
    status, sizes, n_forms = child("write", path, tmp_path)
    assert (status, sizes) == ("passed", ["large", "small"])
    assert child("validate", path, tmp_path) == [[], True, 0, n_forms]


def test_a_form_that_does_not_end_keeps_a_version_waiting_for_its_own_no_longer(
    tmp_path: Path,
) -> None:
    path = tmp_path / "v1_hangs.py"
    path.write_text((KERNELS / "softmax_right.py").read_text() + HANGS)
    status, sizes, _ = child("write", path, tmp_path, least_s=0.2)
    assert (status, sizes) == ("passed", ["large", "small"])
    left, _, compiled, _ = child("validate", path, tmp_path)
    assert {dtype for _, dtype in left} >= {"bfloat16"}
    assert compiled == 0
    assert [[256, 256], "float32"] not in left
