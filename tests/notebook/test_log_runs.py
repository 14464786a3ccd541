"""A log's notebook is run: in an empty workspace it gives the same versions and verdicts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from papermill import execute_notebook, inspect_notebook
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from tests.fake_executor import FakeExecutor
from tests.notebook.shells import KERNEL, Shell
from triton_magics.config import Settings
from triton_magics.errors import IllegalStep
from triton_magics.lab import Lab
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import OpState, Status

ROOT = Path(__file__).parents[2]
SUM = """import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32)))


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    out = torch.empty(rows.shape[0], device=x.device, dtype=x.dtype)
    block = triton.next_power_of_2(rows.shape[1])
    sum_kernel[(rows.shape[0],)](rows, out, rows.stride(0), rows.shape[1], BLOCK_SIZE=block)
    return out.reshape(x.shape[:-1])
"""
TOO_SHORT = SUM.replace("< n_cols", "< n_cols - 1")
NEVER_MENDED = SUM.replace("other=0.0", "other=1.0")


DOUBLE = "def make_inputs(*_): ...\n\n\ndef reference(x):\n    return 2 * x\n"


def story(lab: Lab, op: str) -> list[tuple[Any, ...]]:
    """Return each version with its attempts and the verdict on each."""
    state = lab.status(op)
    assert isinstance(state, OpState)
    return [
        (
            v.version,
            [a.sha256 for a in lab.attempts(op, v.version)],
            v.validation,
            v.coverage,
            v.attempts_failed,
        )
        for v in state.versions
    ]


def notebook_of(lab: Lab, op: str) -> nbformat.NotebookNode:
    """Export the log and return its notebook."""
    return nbformat.read(lab.path / lab.export(op).notebook, as_version=4)


# ------------------------------------------------------------------- with a scripted engine


@pytest.fixture
def elsewhere(tmp_path_factory: pytest.TempPathFactory, engine: FakeExecutor) -> Lab:
    """A session elsewhere: v1 at the second attempt, v2 wrong, v3 with another entry point."""
    lab = Lab(tmp_path_factory.mktemp("elsewhere"), engine=engine, settings=Settings())
    broken, wrong = KERNEL.format("broken"), KERNEL.format("wrong")
    engine.verdicts = {sha256_of(code): Status.FAILED for code in (broken, wrong)}
    lab.op("softmax")
    for version, code in (("v1", broken), ("v1", KERNEL.format("v1")), ("v2", wrong)):
        lab.write("softmax", version, code, technique='it\'s a "try"', cell_offset=1)
        lab.validate("softmax", version, plan="quick", seed=5)
    solve = KERNEL.format("v3").replace("triton_softmax", "solve")
    lab.write("softmax", "v3", solve, cell_offset=1)
    lab.validate("softmax", "v3", seed=6, rtol=0.01, dtypes=("float32",))
    lab.bench("softmax", sizes=("small", "medium"), runs=3)
    return lab


def test_a_log_run_elsewhere_gives_the_same_log(shell: Shell, lab: Lab, elsewhere: Lab) -> None:
    exported = notebook_of(elsewhere, "softmax")
    for cell in exported.cells:
        if cell.cell_type == "code":
            assert shell(cell.source).error is None, cell.source
    assert story(lab, "softmax") == story(elsewhere, "softmax")
    again = notebook_of(lab, "softmax")
    assert [c.id for c in again.cells] == [c.id for c in exported.cells]
    for cell, exported_cell in zip(again.cells, exported.cells, strict=True):
        assert cell == exported_cell


def test_a_log_runs_in_strict_mode_and_says_nothing_of_an_order(
    shell: Shell, lab: Lab, elsewhere: Lab
) -> None:
    """It writes every version before it times any; to go on by hand the gate is there again."""
    shell("%config TritonMagics.strict = True")
    for cell in notebook_of(elsewhere, "softmax").cells:
        if cell.cell_type == "code":
            ran = shell(cell.source)
            assert ran.error is None, cell.source
            assert "waits for its verdict" not in ran.shown()
    assert story(lab, "softmax") == story(elsewhere, "softmax")
    (written, *_) = (e for e in lab.session.workspace.events("softmax") if e.verb == "written")
    assert written.args["replayed"] is True
    shell("%%triton_kernel softmax v4 --no-compile\n" + KERNEL.format("v4"))
    refused = shell("%%triton_kernel softmax v5 --no-compile\n" + KERNEL.format("v5")).error
    assert isinstance(refused, IllegalStep)


def test_a_log_of_an_own_op_runs_elsewhere(shell: Shell, lab: Lab, tmp_path: Path) -> None:
    with Lab(tmp_path / "elsewhere", engine=FakeExecutor(), settings=Settings()) as elsewhere:
        elsewhere.reference("double", DOUBLE)
        elsewhere.write(
            "double", "v1", KERNEL.format("v1").replace("softmax", "double"), cell_offset=1
        )
        elsewhere.validate("double", "v1", seed=3)
        for cell in notebook_of(elsewhere, "double").cells:
            if cell.cell_type == "code":
                assert shell(cell.source).error is None, cell.source
        assert story(lab, "double") == story(elsewhere, "double")


def test_exporting_what_has_not_changed_changes_nothing(elsewhere: Lab) -> None:
    first = elsewhere.export("softmax")
    before = [Path(p).read_bytes() for p in first.paths]
    elsewhere.export("softmax")
    assert [Path(p).read_bytes() for p in first.paths] == before


def test_papermill_puts_its_parameters_into_every_cell(
    shell: Shell, lab: Lab, engine: FakeExecutor, elsewhere: Lab
) -> None:
    parameters = {"plan": "full", "sizes": "small", "runs": 2, "budget_s": 3.5}
    engine.jobs.clear()
    notebook = load_notebook_node(str(elsewhere.path / elsewhere.export("softmax").notebook))
    for cell in parameterize_notebook(notebook, parameters).cells:
        if cell.cell_type == "code":
            shell(cell.source)
    plans = [job.plan for job in engine.jobs if type(job).__name__ == "ValidateJob"]
    assert plans == ["full"] * 4
    assert (engine.jobs[-1].sizes, engine.jobs[-1].runs) == (("small",), 2)
    assert lab.settings.validate_budget_s == 3.5


def test_papermill_finds_what_a_log_takes(elsewhere: Lab) -> None:
    """Check the parameters that `papermill --help-notebook` prints."""
    parameters = inspect_notebook(str(elsewhere.path / elsewhere.export("softmax").notebook))
    assert {name: p["default"] for name, p in parameters.items()} == {
        "plan": '"quick"', "sizes": '"small,medium"', "runs": "3", "budget_s": "20",
    }  # fmt: skip
    assert all(p["help"] for p in parameters.values())


# ------------------------------------------------------------------------- the real thing


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["nbclient", "papermill"])
def test_a_log_is_run_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runner: str
) -> None:
    """About a minute each: a real kernel, real workers, Triton's interpreter, strict mode."""
    monkeypatch.setenv("TRITON_MAGICS_STRICT", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    here, there = tmp_path / "here", tmp_path / "there"
    there.mkdir()
    here.mkdir()
    with Lab(here, settings=Settings(validate_budget_s=2, device="interpreter")) as lab:
        lab.op("sum")
        for version, code in (("v1", TOO_SHORT), ("v1", SUM), ("v2", NEVER_MENDED)):
            lab.write("sum", version, code, cell_offset=1)
            lab.validate("sum", version, plan="quick")
        lab.bench("sum", sizes=("small",), runs=2)
        notebook, expected_story = notebook_of(lab, "sum"), story(lab, "sum")
    assert [verdict for _, _, verdict, _, _ in expected_story] == [Status.PASSED, Status.FAILED]
    runs = 2
    if runner == "nbclient":
        resources = {"metadata": {"path": str(there)}}
        NotebookClient(notebook, resources=resources, timeout=120, kernel_name="python3").execute()
    else:
        path, runs = here / "logs" / "sum_log.ipynb", 3
        execute_notebook(
            path, tmp_path / "ran.ipynb", {"runs": runs}, cwd=there, progress_bar=False
        )
        assert nbformat.read(tmp_path / "ran.ipynb", as_version=4).cells[-1].cell_type == "markdown"
    with Lab(there) as lab:
        assert story(lab, "sum") == expected_story
        (benchmark,) = [lab.benchmark("sum")]
        assert benchmark is not None
        assert (benchmark.sizes, benchmark.runs) == (("small",), runs)
    events = (there / "logs" / "sum_log.jsonl").read_text().splitlines()
    assert [json.loads(line)["verb"] for line in events].count("validated") == 3
