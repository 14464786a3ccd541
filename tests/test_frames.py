"""Tests that the main job takes few frames from the front end to the first check of an output.

`python tests/frames.py` lists them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FRAMES = Path(__file__).parent / "frames.py"
MOST = {"front end": 5, "executor": 6, "harness": 4}  # 9 in all, the executor's own apart


@pytest.fixture(scope="module")
def frames() -> dict[str, list[str]]:
    output = subprocess.run([sys.executable, FRAMES], capture_output=True, text=True, check=False)
    assert output.returncode == 0, output.stderr
    return json.loads(output.stdout)


@pytest.mark.in_turn
@pytest.mark.parametrize("part", MOST)
def test_each_part_of_the_main_job_takes_few_frames(
    frames: dict[str, list[str]], part: str
) -> None:
    assert len(frames[part]) <= MOST[part], "\n".join(frames[part])


def test_the_stacks_are_those_of_the_main_job(frames: dict[str, list[str]]) -> None:
    ends = {part: (stack[0], stack[-1]) for part, stack in frames.items()}
    assert "notebook/magics.py" in ends["front end"][0]
    assert "submit" in ends["front end"][1]
    assert "execution/local/" in ends["executor"][1]
    assert "serve" in ends["harness"][0]
    assert "output_checks.py" in ends["harness"][1]
