"""Nothing that a cell does hurts the notebook: one fault each, and after each all is as before.

`make full` runs every cell, `make test` a twentieth of them, another one each day.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import CLASSES, FILES, GRACE_S, Fault, FaultLab, shown, verdict
from triton_magics.config import LOCKS
from triton_magics.errors import UserError

SECRET = "correct horse battery staple"
SHARES = 20
TODAY = datetime.date.today().toordinal() % SHARES
CASES = [
    pytest.param(Fault(path), id=path.stem, marks=[pytest.mark.slow] * (i % SHARES != TODAY))
    for i, path in enumerate(FILES)
]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    process_tag = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROCESS_TAG, process_tag)
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_TOKEN", SECRET)
        folder = tmp_path_factory.mktemp("workspace")
        patch.chdir(folder)
        faults = FaultLab(folder, process_tag)
        yield faults
        faults.lab.close()
        wait_until(lambda: not tagged_processes(process_tag), within_s=5)


@pytest.mark.parametrize("fault", CASES)
def test_a_cell_gets_its_verdict_and_hurts_nothing(fault: Fault, faults: FaultLab) -> None:
    events, files = faults.n_events(), faults.files()
    value, seconds = faults.do(fault)
    text = shown(value)
    assert fault.status in ("any", verdict(value)), text
    assert re.search(fault.sees, text), text
    assert "\x1b" not in text
    assert SECRET not in value.model_dump_json()
    assert seconds < fault.timeout_s + GRACE_S
    assert_unhurt(faults, events + 2, files)


def assert_unhurt(faults: FaultLab, n_events: int, files: set[str]) -> None:
    wait_until(lambda: not faults.strangers(), within_s=5)
    assert faults.store_is_intact(n_events)
    assert faults.next_job_works()
    assert faults.open_descriptors() == faults.descriptors
    wait_until(lambda: faults.locks_are_free(LOCKS), within_s=30)  # other tests time too
    assert faults.files() == files


PARALLEL = """
import os

import torch


def triton_relu(x):
    torch.mm(torch.randn(1500, 1500), torch.randn(1500, 1500))
    print("threads", torch.get_num_threads(), "running", len(os.listdir("/proc/self/task")))
    return x.relu()
"""


def test_a_forked_worker_has_the_threads_of_a_new_process(faults: FaultLab) -> None:
    """Torch's threads do not survive a fork: the fork server must have started none of them."""
    faults.lab.write("relu", "v3", PARALLEL, compile=False)
    ran = faults.lab.run("relu", "v3", shape=(4, 4), timeout=60)
    assert ran.status == "passed"
    threads, running = map(int, re.findall(r"threads (\d+) running (\d+)", ran.output)[0])
    ask = [sys.executable, "-c", "import torch; print(torch.get_num_threads())"]
    assert threads == int(subprocess.run(ask, capture_output=True, check=True).stdout)
    assert running >= threads  # its own, and the one that watches the engine


LEAVES = """
import torch

SIZES = {"small": (4,), "medium": (8,), "large": (16,)}


def make_inputs(shape, dtype, device, generator):
    return (torch.ones(shape, dtype=dtype, device=device),)


def reference(x):
    raise SystemExit(0)
"""


def test_code_beside_a_version_that_exits_is_named(faults: FaultLab) -> None:
    with pytest.raises(UserError, match=r"--inputs: SystemExit: 5"):
        faults.lab.run("relu", "v1", inputs="exit(5)")
    with pytest.raises(UserError, match=r"the reference .*SystemExit: 0"):
        faults.lab.reference("leaves", LEAVES)
    assert faults.next_job_works()


def test_there_are_enough_faults_and_each_says_what_comes_of_it() -> None:
    faults = [Fault(path) for path in FILES]
    assert len(faults) >= 120
    assert all(fault.status for fault in faults)
    n_of_class = Counter(fault.kind for fault in faults)
    assert set(n_of_class) == set(CLASSES)
    assert min(n_of_class.values()) >= 5
    assert {f.status for f in faults} >= {
        "passed", "crashed", "timeout", "runtime_error", "out_of_memory"
    }  # fmt: skip
