"""Processes that need the same Triton kernel at the same time compile it once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.in_turn

ROOT = Path(__file__).parents[2]
COUNT = """
import json, os, sys
from pathlib import Path
import triton
from triton_magics.execution.job_requests import OpRef
from triton_magics.harness import compile_ahead
from triton_magics.harness.process import compile_processes, fork_server
from triton_magics.languages.kernel_compiler import Target
from tests.harness.kit import version_of

path, log = map(Path, sys.argv[1:])
fork_server.import_all_modules()


def note(*, cache_hit, **more):
    with log.open("a") as file:
        file.write("H" if cache_hit else "C")


def work(order):
    triton.knobs.compilation.listener = note
    before = triton.knobs.cache.manager_class
    compile_ahead.compile_order(order)
    assert triton.knobs.cache.manager_class is before


os.cpu_count = lambda: 4
compile_processes.start_compile_processes(work)
ref = version_of(path, "softmax")
forms = [((7, n), "float32", (), ()) for n in (1001, 1003, 1005, 1007)]  # all of one kernel
batch = compile_ahead.AheadCompilation(OpRef(name="softmax"), ref, forms, Target())._work
batch.wait()
compile_processes.wait_for_exit()
print(json.dumps([sorted(batch.failed), "".join(sorted(log.read_text()))]))
"""


def count_compilations(source: str, folder: Path, **variables: str) -> tuple[list[int], str]:
    """Return the forms that failed, and `C` for each compilation and `H` for each cache hit."""
    path = folder / "v1_once.py"
    path.write_text(source)
    log = folder / "log"
    log.touch()
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    env |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_MAGICS_SCRATCH": str(folder)}
    process = subprocess.run(
        [sys.executable, "-c", COUNT, str(path), str(log)], capture_output=True, text=True,
        check=False, cwd=ROOT, env=env | variables, timeout=240,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    failed, events = json.loads(process.stdout.splitlines()[-1])
    return failed, events


@pytest.fixture
def source() -> str:
    return (ROOT / "tests" / "faults" / "kernels" / "softmax_right.py").read_text()


def test_four_processes_compile_a_kernel_once(source: str, tmp_path: Path) -> None:
    assert count_compilations(source, tmp_path) == ([], "CHHH")


def test_a_compile_error_holds_no_other_process_up(source: str, tmp_path: Path) -> None:
    broken = source.replace("tl.exp(x", "tl.no_such_function(x")
    assert broken != source
    assert count_compilations(broken, tmp_path) == ([], "")  # the launch will report the error


def test_the_users_own_cache_manager_is_used(source: str, tmp_path: Path) -> None:
    own = {"TRITON_CACHE_MANAGER": "triton.runtime.cache:FileCacheManager"}
    failed, events = count_compilations(source, tmp_path, **own)
    assert failed == []
    assert len(events) == 4
