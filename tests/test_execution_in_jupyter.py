# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The engine in a real Jupyter kernel: interrupt, restart, and a kernel that is killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import process_tag, tagged_processes, wait_until  # noqa: F401 (process_tag: a fixture)
from jupyter_kernel import Notebook

HERE = Path(__file__).parent
START = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
from execution_kit import scripted_job, run, scripted_executor, read_facts
engine = scripted_executor()
print(read_facts(run(engine, scripted_job("answers"), key="a"))["pid"] > 0)
"""
HANG = """
outcome = run(engine, scripted_job("hangs"), key="a", on_progress=lambda p: print(p.stage))
print(outcome.status)
"""


@pytest.fixture
def notebook(process_tag: str) -> Iterator[Notebook]:
    notebook = Notebook()
    notebook.start(START)
    notebook.wait_for("True")
    notebook.start(HANG)
    notebook.wait_for("hanging")
    assert len(engine_processes(process_tag)) >= 2
    yield notebook
    notebook.close()


def engine_processes(process_tag: str) -> list[int]:
    """Return the supervisor and the workers: all processes of the test but the kernels."""
    return [pid for pid in tagged_processes(process_tag) if b"ipykernel" not in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"ipykernel"  # gone meanwhile: nobody's


def test_kernel_interrupt_ends_the_job_and_the_next_cell_works(notebook: Notebook) -> None:
    notebook.manager.interrupt_kernel()
    notebook.wait_for("interrupted")
    notebook.start('print(run(engine, scripted_job("answers"), key="a").status)')
    notebook.wait_for("finished")


def test_kernel_restart_leaves_no_worker(notebook: Notebook, process_tag: str) -> None:
    before = engine_processes(process_tag)
    assert len(before) >= 2
    notebook.manager.restart_kernel(now=True)
    wait_until(lambda: not set(before) & set(engine_processes(process_tag)))


def test_a_killed_kernel_leaves_no_worker(notebook: Notebook, process_tag: str) -> None:
    notebook.kill()
    wait_until(lambda: not engine_processes(process_tag))


# What a kernel is doing when it ends, and what it says once it is that far.
STAGES = {
    "idle": (
        "obeys.py",
        'print("there") if run(engine, scripted_job("answers"), key="a") else 0',
        "there",
    ),
    "warming up": ("never_ready.py", HANG, "starting a worker"),
    "silent": ("obeys.py", HANG.replace('"hangs"', '"reports_then_hangs"'), "timing"),
    "deaf": ("obeys.py", HANG.replace('"hangs"', '"hangs_deaf"'), "deaf to signals"),
    "multiplied": ("obeys.py", HANG.replace('"hangs"', '"multiplies"'), "multiplied"),
}


@pytest.fixture
def bare() -> Iterator[Notebook]:
    notebook = Notebook()
    yield notebook
    notebook.close()


@pytest.mark.parametrize(
    "how",
    [
        "kill",
        pytest.param("restart", marks=pytest.mark.slow),
        pytest.param("shutdown", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("stage", STAGES)
def test_no_process_outlives_its_kernel(
    bare: Notebook, process_tag: str, stage: str, how: str
) -> None:
    script, cell, last_line = STAGES[stage]
    start = START.replace("scripted_executor()", f"scripted_executor({script!r})")
    bare.start(start.rpartition("print")[0])
    bare.start(cell)
    bare.wait_for(last_line)
    wait_until(lambda: len(engine_processes(process_tag)) >= 2)
    before = engine_processes(process_tag)
    if how == "kill":
        bare.kill()
    elif how == "restart":
        bare.manager.restart_kernel(now=True)
    else:
        bare.manager.shutdown_kernel(now=True)
    wait_until(lambda: not set(before) & set(engine_processes(process_tag)))
