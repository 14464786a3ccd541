"""What a write waits for: a version that never ends as long as any step, not as a compiler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_magics.config import Settings
from triton_magics.engine.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Compilation, RunResult, Status

RIGHT = (Path(__file__).parent / "faults" / "kernels" / "softmax_right.py").read_text()
IN_THE_WRAPPER = "def triton_softmax(x):\n    while True: pass\n"
AT_IMPORT = "while True: pass\n\n\ndef triton_softmax(x):\n    return x\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    settings = Settings(device="interpreter", silence_s=2.0, compile_s=100.0)
    with Lab(tmp_path_factory.mktemp("workspace"), settings=settings) as made:
        yield made


@pytest.mark.parametrize(
    ("source", "while_", "line"),
    [(IN_THE_WRAPPER, "calling it without its kernels", 2), (AT_IMPORT, "importing it", 1)],
)
def test_a_version_that_never_ends_does_not_have_a_compilers_time_when_it_is_written(
    lab: Lab, source: str, while_: str, line: int
) -> None:
    made = lab.write("softmax", "v1", source).compilation
    assert isinstance(made, Compilation)
    assert made.status is Status.TIMEOUT
    assert str(made.note).startswith(f"no answer in 2 s while {while_}, at cell line ")
    assert f"v1_baseline.py:{line + 2}" in str(made.note)


def test_without_a_gpu_a_call_that_never_ends_has_no_compilers_time_either(lab: Lab) -> None:
    lab.write("softmax", "v2", IN_THE_WRAPPER, compile=False)
    made = lab.run("softmax", "v2")
    assert isinstance(made, RunResult)
    assert made.status is Status.TIMEOUT
    assert str(made.message).startswith("no answer in 2 s while calling it on small 256x256")


def test_only_what_compiles_has_a_compilers_time(lab: Lab) -> None:
    heard: list[Progress] = []
    lab.on_progress = heard.append
    try:
        assert not lab.write("softmax", "v3", RIGHT).status.failed
    finally:
        lab.on_progress = None
    patience = {step.stage: step.patience_s for step in heard}
    assert patience["importing it"] == patience["calling it without its kernels"] == 0
    compiling = {words: s for words, s in patience.items() if words.startswith("compiling for")}
    assert compiling
    assert set(compiling.values()) == {100.0}


def test_a_file_that_another_notebook_wrote_meanwhile_is_said_to_have_changed(lab: Lab) -> None:
    lab.write("softmax", "v4", RIGHT, compile=False)
    source = lab.source("softmax", "v4")
    path = lab.path / source.path
    path.write_text(f"{path.read_text()}# by another\n")
    made = lab._jobs.compile(source, 90)
    assert str(made.note).startswith("kernels/softmax/v4_optimized.py changed while it was being")
