"""A survey in a compile process, and what is compiled because of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS

pytestmark = pytest.mark.in_turn

ROOT = KERNELS.parents[2]
# Survey a version in a compile process, then compile a form that was not planned.
CHILD = """
import json, os, sys
from pathlib import Path
from triton_magics import operators
from triton_magics.execution.job_requests import OpRef
from triton_magics.harness.compile_ahead import AheadCompilation, input_forms
from triton_magics.harness.correctness.launch_cases import LaunchPlanner
from triton_magics.harness.correctness.survey_order import execute, survey_of, survey_order
from triton_magics.harness.process import compile_processes, fork_server
from triton_magics.languages.kernel_compiler import Target
from triton_magics.model import Case
from tests.harness.kit import version_of

path, limit_s = sys.argv[1:]
fork_server.import_all_modules()
os.cpu_count = lambda: 2
compile_processes.start_compile_processes(execute)
ref, own, op = version_of(Path(path), "softmax"), OpRef(name="softmax"), operators.load("softmax")
planned = [Case(shape=(7, 13), dtype="float32", seed=1)]
planner = LaunchPlanner(
    op, planned, dtypes=op.dtypes, source="100", plan="full", seed=7, is_interpreted=False
)
order = survey_order(own, ref, planner.cases, planner.limit_s, Target(90, 132))
assert survey_of(order).of_cases == ()
ahead = AheadCompilation(own, ref, input_forms(planned), Target(90, 132), first=order)
done = ahead.has_done_first(within_s=float(limit_s))
plan = planner.plan(survey_of(order))
(form,) = input_forms([Case(shape=(3, 700), dtype="float32", seed=1)])
ahead.add(forms := [form, *input_forms(planned)])
compiled = all([ahead.is_finished(form, within_s=60.0 if done else 0.0) for form in forms])
ahead.end(within_s=0.0)
cubins = len(list(Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.cubin")))
print(json.dumps([done, len(plan.relations), [c.extent for c in plan.cases], compiled, cubins]))
"""
LOOPS = "\n\nif torch.cuda.is_available():\n    while True:\n        pass\n"


def child(path: Path, tmp_path: Path, limit_s: float) -> list[object]:
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    process = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(limit_s)], capture_output=True, text=True,
        check=False, cwd=ROOT,
        env={**env, "TRITON_CACHE_DIR": str(tmp_path / "cache"),
             "TRITON_MAGICS_SCRATCH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    answer: list[object] = json.loads(process.stdout.splitlines()[-1])
    return answer


def test_a_compile_process_surveys_then_compiles_what_is_added(tmp_path: Path) -> None:
    done, n_forms, extents, compiled, n_cubins = child(
        KERNELS / "right" / "softmax_many_rows.py", tmp_path, 60.0
    )
    assert done is True
    assert isinstance(n_forms, int)
    assert n_forms > 200
    assert isinstance(extents, list)
    assert len(extents) >= 3  # paths and relations of its launches
    assert compiled is True
    assert n_cubins == 2


@pytest.mark.parametrize(
    ("added", "done"), [(LOOPS, False), ("\n\nraise OSError\n", None)], ids=["hangs", "raises"]
)
def test_a_survey_that_does_not_end_or_raises_is_given_up(
    tmp_path: Path, added: str, done: bool | None
) -> None:
    path = tmp_path / "v1_other.py"
    path.write_text((KERNELS / "softmax_right.py").read_text() + added)
    is_done, n_forms, extents, *_ = child(path, tmp_path, 5.0)
    assert (is_done, n_forms, extents) == (done, 0, [])
