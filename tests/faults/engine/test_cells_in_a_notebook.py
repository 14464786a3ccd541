"""The same cells, as a user runs them: magics in a real Jupyter kernel, which goes on afterwards.

`make full` runs every cell, `make test` a twentieth of them, another one each day (and not the one
that test_cells runs).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import CELLS, FILES, GRACE_S, Fault
from tests.faults.engine.test_cells import SECRET, SHARES, TODAY
from tests.jupyter_kernel import Notebook

ROOT = CELLS.parents[2]
CASES = [
    pytest.param(
        Fault(path), id=path.stem, marks=[pytest.mark.slow] * (i % SHARES != (TODAY + 3) % SHARES)
    )
    for i, path in enumerate(FILES)
]
START = f"""
import json, os, sys, time
sys.path.insert(0, {str(ROOT)!r})
%load_ext triton_magics
%config TritonMagics.device = "interpreter"
%config TritonMagics.sandbox = "off"
%config TritonMagics.host_memory_gib = 2.0
import triton_magics
from tests.execution_kit import wait_until
from tests.faults.engine.fault_lab import FaultLab, verdict
from tests.faults.next_job import all_ready
from triton_magics.config import LOCKS
lab = triton_magics.default_lab()
faults = FaultLab(__import__("pathlib").Path.cwd(), {{process_tag!r}}, lab=lab)
wait_until(lambda: all_ready(faults), within_s=60)
"""
# Asked of the kernel itself, after the fault.
CHECK = """
last = triton_magics.default_lab().last
wait_until(lambda: not faults.strangers(), within_s=5)
wait_until(lambda: faults.locks_are_free(LOCKS), within_s=30)  # other tests time too
print("CHECKED " + json.dumps({
    "verdict": verdict(last), "value": last.model_dump_json(), "events": faults.n_events(),
    "intact": faults.store_is_intact(0), "next": faults.next_job_works(),
    "leaked": faults.open_descriptors() - faults.descriptors,
    "locks": faults.locks_are_free(LOCKS), "files": sorted(faults.files()),
}))
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    process_tag = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROCESS_TAG, process_tag)
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("HF_TOKEN", SECRET)
        patch.chdir(tmp_path_factory.mktemp("workspace"))
        notebook = Notebook()
        assert "Traceback" not in text_of(notebook.run(START.format(process_tag=process_tag)))
        yield notebook
        notebook.close()
        wait_until(lambda: not tagged_processes(process_tag), within_s=5)


def text_of(messages: list[dict[str, Any]]) -> str:
    """Return the whole text of a cell's output."""
    parts = []
    for message in messages:
        parts += [message.get("text", ""), *message.get("traceback", [])]
        parts.append(message.get("data", {}).get("text/plain", ""))
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(parts))


def as_a_user(notebook: Notebook, fault: Fault) -> str:
    """Write the cell and request its verdict; return the displayed text."""
    by = fault.says("by", "run")
    option = "" if by == "write" else " --no-compile"
    shown = notebook.run(f"%%triton_kernel relu v2{option}\n{fault.source}")
    line = {
        "write": "",
        "run": f"%triton_run relu v2 --shape 4x4 --timeout {fault.timeout_s:g}",
        "validate": f"%triton_validate relu v2 --shape 4x4 --dtype float32 "
        f"--timeout {fault.timeout_s:g}",
    }[by]
    if line:
        shown += notebook.run(line, within_s=fault.timeout_s + GRACE_S + 60)
    return text_of(shown)


def run_check(notebook: Notebook) -> dict[str, Any]:
    text = text_of(notebook.run(CHECK))
    assert "CHECKED " in text, text
    return json.loads(text.split("CHECKED ", 1)[1].splitlines()[0])


@pytest.mark.parametrize("fault", CASES)
def test_a_cell_gets_its_verdict_and_the_notebook_goes_on(fault: Fault, notebook: Notebook) -> None:
    before = run_check(notebook)
    text = as_a_user(notebook, fault)
    after = run_check(notebook)
    assert fault.status in ("any", after["verdict"]), text
    assert re.search(fault.sees, text), text
    assert "\x1b" not in text
    assert SECRET not in text + after["value"]
    assert after["events"] >= before["events"] + 2
    assert (after["intact"], after["next"], after["leaked"]) == (True, True, 0)
    assert after["locks"]
    assert after["files"] == before["files"]
