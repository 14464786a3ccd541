"""Each of the commonest mistakes is made, and its message comes with the advice that mends it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.kit import Recorder, version_of
from triton_magics import knowledge
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import RunJob
from triton_magics.harness.correctness import run_job
from triton_magics.model import Mistake, RunResult, Status

COMPILE = Path(__file__).parent / "compile_mistakes.py"
KERNELS = knowledge.sound_kernels(knowledge.shipped().mistakes)
# What the interpreter sees too; the rest of the mistakes run in it as if they were right.
INTERPRETED = (
    "A block length that is not a power of two",
    "A launch without a grid",
    "A grid that is a number",
    "A kernel without its decorator",
    "An argument left out",
    "A misspelt name",
    "A function that Triton does not have",
    "A torch function in a kernel",
)


@pytest.fixture(scope="module")
def compiled() -> dict[str, dict[str, Any]]:
    process = subprocess.run(
        [sys.executable, str(COMPILE)], capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


def titles(mistake: Mistake) -> str:
    return mistake.title


def test_there_are_more_than_twenty_and_no_two_share_their_words() -> None:
    mistakes = knowledge.mistakes()
    assert len(mistakes) > 20
    assert knowledge.shipped().mistakes.count("\n## ") == len(mistakes) + 1
    for arguments in (message for m in mistakes for message in m.messages):
        assert sum(arguments in m.messages for m in mistakes) == 1


@pytest.mark.parametrize("op", KERNELS)
def test_the_kernels_that_they_are_made_in_are_sound(
    op: str, compiled: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    assert (compiled[op]["status"], compiled[op]["note"]) == ("passed", None)
    assert ran(KERNELS[op], op, tmp_path).status is Status.PASSED


@pytest.mark.parametrize("mistake", knowledge.mistakes(), ids=titles)
def test_mistake_gets_its_advice(mistake: Mistake, compiled: dict[str, dict[str, Any]]) -> None:
    message = compiled[mistake.title]
    if message["error"] is None:
        assert message["note"].endswith(mistake.advice)
        return
    assert message["status"] == "compile_error"
    assert message["error"]["hint"].endswith(mistake.advice)


def test_most_messages_point_at_the_line_that_is_wrong(
    compiled: dict[str, dict[str, Any]],
) -> None:
    pointed = [
        m.title
        for m in knowledge.mistakes()
        if (error := compiled[m.title]["error"]) and error["code"] in m.wrong.splitlines()
    ]
    assert len(pointed) >= 15, pointed


@pytest.mark.parametrize("title", INTERPRETED)
def test_where_the_interpreter_sees_it_it_gives_the_same_advice(title: str, tmp_path: Path) -> None:
    mistake = next(m for m in knowledge.mistakes() if m.title == title)
    source = KERNELS[mistake.kernel].replace(mistake.right, mistake.wrong)
    error = ran(source, mistake.kernel, tmp_path).error
    assert error is not None
    assert str(error.hint).endswith(mistake.advice)


def ran(source: str, op: str, folder: Path) -> RunResult:
    path = folder / "v1.py"
    path.write_text(source)
    shape = (33, 17, 20) if op == "matmul" else (5, 130)
    job = RunJob(op=OpRef(name=op), version=version_of(path, op), shape=shape)
    answer, _ = run_job.run(job, Recorder())
    assert isinstance(answer, RunResult)
    return answer
