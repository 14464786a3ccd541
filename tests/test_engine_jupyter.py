"""The engine in a real Jupyter kernel: interrupt, restart, and a kernel that is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_harness import mark, marked, wait_until  # noqa: F401 (mark: a fixture)
from jupyter_kernel import Notebook

HERE = Path(__file__).parent
START = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parent)!r}]
from engine_harness import order, scripted, told
engine = scripted()
print(told(engine.run(order("answers"), key="a"))["pid"] > 0)
"""
HANG = """
outcome = engine.run(order("hangs"), key="a", on_progress=lambda p: print(p.stage))
print(outcome.status)
"""


@pytest.fixture
def notebook(mark: str) -> Iterator[Notebook]:  # noqa: F811 (the imported fixture)
    notebook = Notebook()
    notebook.start(START)
    notebook.wait_for("True")
    notebook.start(HANG)
    notebook.wait_for("hanging")
    assert len(engine_processes(mark)) >= 2
    yield notebook
    notebook.close()


def engine_processes(mark: str) -> list[int]:  # noqa: F811 (its value)
    """The nanny and the workers: what a kernel started that is no kernel itself."""
    return [pid for pid in marked(mark) if b"ipykernel" not in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b"ipykernel"  # gone meanwhile: nobody's


def test_kernel_interrupt_ends_the_job_and_the_next_cell_works(notebook: Notebook) -> None:
    sent_at = time.monotonic()
    notebook.manager.interrupt_kernel()
    notebook.wait_for("interrupted")
    assert time.monotonic() - sent_at < 1
    notebook.start('print(engine.run(order("answers"), key="a").status)')
    notebook.wait_for("finished")


def test_kernel_restart_leaves_no_worker(notebook: Notebook, mark: str) -> None:  # noqa: F811
    before = engine_processes(mark)
    assert len(before) >= 2
    notebook.manager.restart_kernel(now=True)
    wait_until(lambda: not set(before) & set(engine_processes(mark)), within_s=1)


def test_a_killed_kernel_leaves_no_worker(notebook: Notebook, mark: str) -> None:  # noqa: F811
    notebook.kill()
    wait_until(lambda: not engine_processes(mark), within_s=1)


# What a kernel is doing when it ends, and what it says once it is that far.
STAGES = {
    "idle": ("obeys.py", 'print("there") if engine.run(order("answers"), key="a") else 0', "there"),
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
def test_no_process_outlives_its_kernel(bare: Notebook, mark: str, stage: str, how: str) -> None:  # noqa: F811
    script, cell, told = STAGES[stage]
    bare.start(START.replace("scripted()", f"scripted({script!r})").rpartition("print")[0])
    bare.start(cell)
    bare.wait_for(told)
    before = engine_processes(mark)
    assert len(before) >= 2
    if how == "kill":
        bare.kill()
    elif how == "restart":
        bare.manager.restart_kernel(now=True)
    else:
        bare.manager.shutdown_kernel(now=True)
    wait_until(lambda: not set(before) & set(engine_processes(mark)), within_s=1)
