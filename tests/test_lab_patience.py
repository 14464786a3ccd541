# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Tests of the time limits of a write: an endless version has the limit of a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.execution_kit import (  # noqa: F401 (limits_clock: a fixture)
    LIMITS,
    PAST_SILENCE_S,
    LimitsClock,
    limits_clock,
)
from triton_magics.config import Settings
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Compilation, RunResult, Status

RIGHT = (Path(__file__).parent / "faults" / "kernels" / "softmax_right.py").read_text()
IN_THE_WRAPPER = "def triton_softmax(x):\n    while True: pass\n"
AT_IMPORT = "while True: pass\n\n\ndef triton_softmax(x):\n    return x\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = Settings(device="interpreter", **LIMITS, compile_s=100.0)
    with Lab(tmp_path_factory.mktemp("workspace"), settings=settings) as lab:
        yield lab


@pytest.fixture(autouse=True)
def patient_stack_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_magics.execution.local.worker_pool.STACK_DUMP_S", 60.0)


@contextmanager
def silent_after(lab: Lab, limits_clock: LimitsClock, stage: str) -> Iterator[None]:
    """Let the limit of a step pass once a job reports that stage."""
    lab.on_progress = limits_clock.after(stage, PAST_SILENCE_S)
    yield
    lab.on_progress = None


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("source", "while_", "line"),
    [(IN_THE_WRAPPER, "calling its wrapper, kernels skipped", 2), (AT_IMPORT, "importing it", 1)],
)
def test_writing_an_endless_version_gets_no_compile_time(
    lab: Lab, limits_clock: LimitsClock, source: str, while_: str, line: int
) -> None:
    with silent_after(lab, limits_clock, while_):
        result = lab.write("softmax", "v1", source).compilation
    assert isinstance(result, Compilation)
    assert result.status is Status.TIMEOUT
    assert str(result.note).startswith(f"no answer in 60 s while {while_}, at cell line ")
    assert f"v1_baseline.py:{line + 2}" in str(result.note)


@pytest.mark.in_turn
def test_an_endless_call_without_gpu_gets_no_compile_time(
    lab: Lab, limits_clock: LimitsClock
) -> None:
    lab.write("softmax", "v2", IN_THE_WRAPPER, compile=False)
    with silent_after(lab, limits_clock, "calling it on small 256x256 float32"):
        result = lab.run("softmax", "v2")
    assert isinstance(result, RunResult)
    assert result.status is Status.TIMEOUT
    assert str(result.message).startswith("no answer in 60 s while calling it on small 256x256")


def test_only_what_compiles_has_a_compilers_time(lab: Lab) -> None:
    received: list[Progress] = []
    lab.on_progress = received.append
    try:
        assert not lab.write("softmax", "v3", RIGHT).status.failed
    finally:
        lab.on_progress = None
    patience = {step.stage: step.patience_s for step in received}
    assert patience["importing it"] == patience["calling its wrapper, kernels skipped"] == 0
    compiling = {words: s for words, s in patience.items() if words.startswith("compiling for")}
    assert compiling
    assert set(compiling.values()) == {100.0}


def test_job_uses_its_source_if_the_file_changes(lab: Lab) -> None:
    lab.write("softmax", "v4", RIGHT, compile=False)
    source = lab.source("softmax", "v4")
    path = lab.path / source.path
    path.write_text("raise RuntimeError('written by another notebook')\n")
    result = lab.session.jobs.compile(source, 90)
    assert result.status is Status.PASSED
