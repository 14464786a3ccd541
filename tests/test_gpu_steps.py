"""The script that runs what needs a GPU, in parts: here with steps that need none."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from scripts.gpu_steps import STEPS, GpuSteps, Step, chosen, is_done, read_ended

ROOT = Path(__file__).parents[1]
NOTES = """
import json, os, sys, time
began = time.monotonic()
while time.monotonic() - began < float(sys.argv[2]):
    pass
value = {"gpus": os.environ["CUDA_VISIBLE_DEVICES"], "from": began, "to": time.monotonic()}
with open(sys.argv[1], "w") as file:
    json.dump(value, file)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "notes.py"
    path.write_text(NOTES)
    return path


def run(steps: list[Step], folder: Path, *, gpus: int = 2, limit_s: float = 40.0) -> GpuSteps:
    """Return the steps after they ran."""
    archive = folder.parent / "all.tar.gz"
    call = GpuSteps(steps, gpus=gpus, limit_s=limit_s, folder=folder, archive=archive)
    call.run()
    return call


def notes(folder: Path, name: str) -> tuple[str, float, float]:
    """Return the GPUs of a step, its begin and its end."""
    value = json.loads((folder / f"{name}.json").read_text())
    return value["gpus"], value["from"], value["to"]


def test_times_are_measured_on_each_gpu_beside_no_busy_step(tmp_path: Path, program: Path) -> None:
    command = f"{program} {{json}} 0.3"
    steps = [
        Step("both", command, 1, gpus=2),
        Step("one", command, 1),
        Step("busy", command, 1, is_busy=True),
        Step("two", command, 1),
    ]
    call = run(steps, tmp_path / "out")
    assert all(is_done(call.ended[step.name]) for step in steps)
    at = {step.name: notes(call.folder, step.name) for step in steps}
    assert at["both"][0] == "0,1"
    assert {at["one"][0], at["two"][0]} == {"0", "1"}
    assert at["both"][2] <= min(at["one"][1], at["two"][1])
    assert at["busy"][1] >= max(at["one"][2], at["two"][2])
    with tarfile.open(tmp_path / "all.tar.gz") as archive:
        names = {Path(name).name for name in archive.getnames()}
    assert {"both.json", "busy.log", "steps.json"} <= names


def test_a_step_that_does_not_fit_is_left_out(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [
        Step("long", f"{program} {{json}} 1", 60),
        Step("late", f"{program} {{json}} 600", 1),
    ]
    call = run(steps, tmp_path / "out", gpus=2, limit_s=12.5)
    assert call.ended["late"]["how"] == "stopped at the limit"
    assert "long" not in call.ended
    assert "left out, 60 s do not fit: long" in capsys.readouterr().out
    assert read_ended(tmp_path / "out") == call.ended


def test_a_step_that_failed_is_run_again(tmp_path: Path, program: Path) -> None:
    ended = run([Step("loop", "-c raise", 1)], tmp_path / "out").ended
    assert ended["loop"]["how"] == "exit code 1"
    assert "loop" in [step.name for step in chosen((), ended)]
    ended["loop"]["how"] = "exit code 0"
    assert "loop" not in [step.name for step in chosen((), ended)]
    assert [step.name for step in chosen(("loop*",), ended)] == ["loop", "loop-cuda"]
    with pytest.raises(ValueError, match="no step is called 'lopo'; --list shows all"):
        chosen(("lopo",), ended)


def test_steps_run_in_the_order_of_their_names() -> None:
    names = [step.name for step in chosen(("loop", "gpu-*", "lanes", "loop*"), {})]
    assert names == ["loop", "gpu-rates", "gpu-times", "lanes", "loop-cuda"]


def test_the_program_of_every_step_is_there_and_names_are_unique() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    for step in STEPS:
        words = step.command.split()
        path = words[0] if words[0] != "-m" else next(w for w in words if w.endswith(".py"))
        assert (ROOT / path).is_file(), step.name
