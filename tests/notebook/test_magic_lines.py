"""Options of a magic's line, its help, and the messages for wrong lines."""

from __future__ import annotations

import traceback

import pytest
from IPython.core.error import UsageError

from tests.fake_executor import FakeExecutor
from tests.notebook.shells import KERNEL, Shell
from triton_magics import verbs
from triton_magics.errors import (
    BadKernelSource,
    IllegalStep,
    UnknownName,
    UnknownOp,
    UnknownVersion,
    WorkerError,
)
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import RunJob
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, KernelError, Status, Validations


@pytest.mark.parametrize(
    ("words", "field", "expected"),
    [
        ("--dtype float16", "dtypes", ("float16",)),
        ("--dtype float16,float32", "dtypes", ("float16", "float32")),
        ("--dtype float16 --dtype bfloat16", "dtypes", ("float16", "bfloat16")),
        ("", "dtypes", None),
        ("--quick", "plan", "quick"),
        ("", "plan", "full"),
        ("--shape 257x1023 --shape 7", "shapes", ((257, 1023), (7,))),
        ("--seed 83114", "seed", 83114),
        ("--rtol 1e-3", "rtol", 1e-3),
        ("--atol 1e-4", "atol", 1e-4),
    ],
)
def test_options_of_validate_reach_the_job(
    shell: Shell, engine: FakeExecutor, words: str, field: str, expected: object
) -> None:
    shell.write("v1")
    shell(f"%triton_validate softmax v1 {words}")
    assert getattr(engine.jobs[-1], field) == expected


@pytest.mark.parametrize(
    ("words", "field", "expected"),
    [
        ("--sizes large,small", "sizes", ("small", "large")),
        ("--runs 3", "runs", 3),
        ("--dtype float16", "dtype", "float16"),
        ("--against torch.compile --against m:f", "against", ("torch.compile", "m:f")),
        ("--hot", "cold", False),
        ("", "cold", True),
        ("--budget 5", "budget_s", 5.0),
        ("--seed 7", "seed", 7),
    ],
)
def test_options_of_bench_reach_the_job(
    shell: Shell, engine: FakeExecutor, words: str, field: str, expected: object
) -> None:
    shell.write("v1")
    shell("%triton_validate softmax v1")
    shell(f"%triton_bench softmax {words}")
    assert getattr(engine.jobs[-1], field) == expected


@pytest.mark.parametrize(
    ("words", "field", "expected"),
    [
        ("--size medium", "size", "medium"),
        ("--shape 5x7", "shape", (5, 7)),
        ("--dtype float16", "dtype", "float16"),
        ("--seed 3", "seed", 3),
        ("--inputs '(torch.eye(3),)'", "inputs", "(torch.eye(3),)"),
    ],
)
def test_options_of_run_reach_the_job(
    shell: Shell, engine: FakeExecutor, words: str, field: str, expected: object
) -> None:
    shell.write("v1")
    shell(f"%triton_run softmax v1 {words}")
    assert getattr(engine.jobs[-1], field) == expected


def test_options_of_the_kernel_magic_are_recorded(
    shell: Shell, lab: Lab, engine: FakeExecutor
) -> None:
    source = "def a(x):\n    return x\n\n\ndef b(x):\n    return x\n"
    line = '%%triton_kernel softmax v1 --entry b --technique "two rows at once" --no-compile'
    value = shell(f"{line}\n{source}").value
    assert value.source.entry == "b"
    assert value.source.cell_offset == 1
    assert engine.jobs == []
    assert value.compilation is None


def test_several_versions_are_timed_together(shell: Shell, engine: FakeExecutor) -> None:
    for version in ("v1", "v2"):
        shell.write(version)
    assert isinstance(shell("%triton_validate softmax all").value, Validations)
    value = shell("%triton_bench softmax v2 v1").value
    assert isinstance(value, Benchmark)
    assert value.versions == ("v1_baseline", "v2_tiling")


def test_a_reason_may_have_many_words(shell: Shell, lab: Lab) -> None:
    shell("%triton_op softmax")
    shell.write("v1")
    value = shell("%triton_status softmax --force-write it uses too many registers").value
    assert value.state == "write"
    assert value.n_events == lab.status("softmax").n_events


def test_reset_starts_over(shell: Shell) -> None:
    shell("%triton_op softmax")
    assert shell("%triton_status softmax --reset").value.state == "start"


def test_a_diff_says_what_changed_between_attempts(shell: Shell) -> None:
    shell.write("v1")
    shell.write("v1", text=" mended")
    text = shell("%triton_diff softmax v1:1 v1").shown("text/markdown")
    assert "-    return x  # v1\n+    return x  # v1 mended" in text


def test_a_diff_has_verdicts_and_times_beside_the_code(shell: Shell, engine: FakeExecutor) -> None:
    engine.times_us = {"v1": (2.0, 4.0, 48.0), "v2": (2.0, 2.0, 23.0)}
    for version in ("v1", "v2"):
        shell.write(version)
    before = shell("%triton_diff softmax v1 v2")
    assert "not timed together" in before.shown()
    assert "next: %triton_validate softmax v1" in before.shown()
    shell("%triton_validate softmax all -q")
    shell("%triton_bench softmax -q")
    value = shell("%triton_diff softmax v1 v2").value
    assert [side.validation.status for side in value.sides] == ["passed", "passed"]
    assert value.benchmark.speedup("v2_tiling", "v1_baseline") == 2.0
    shell("%triton_bench softmax v2 -q")  # v2 alone: the two are still in one benchmark
    assert shell("%triton_diff softmax v1 v2").value.benchmark == value.benchmark
    shell.write("v1", text=" mended")
    assert shell("%triton_diff softmax v1 v2").value.benchmark is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("v1 v9", "softmax has no v9"),
        ("v1 v1:7", "v1_baseline has no attempt 7; known: 1"),
        ("v1:x v1", "'v1:x' is no version: write v2, or v2:1 for its first attempt"),
        ("v1:0 v1", "'v1:0' is no version"),
    ],
)
def test_a_diff_of_what_is_not_there_says_what_is(shell: Shell, line: str, message: str) -> None:
    shell.write("v1")
    assert message in str(shell(f"%triton_diff softmax {line}").error)


def test_restore_without_a_number_says_which_there_are(shell: Shell) -> None:
    shell.write("v1")
    shell.write("v1", text=" mended")
    error = shell("%triton_restore softmax v1").error
    assert str(error) == "which attempt? softmax v1 has 1, 2: add --attempt N"
    assert "has no attempt 5; known: 1, 2" in str(
        shell("%triton_restore softmax v1 --attempt 5").error
    )


def test_restore_brings_an_attempt_back(shell: Shell, lab: Lab) -> None:
    shell.write("v1")
    shell.write("v1", text=" mended")
    shell("%triton_restore softmax v1 --attempt 1")
    assert lab.source("softmax", "v1").source == KERNEL.format("v1")


def test_help_is_displayed_with_an_example_and_asks_nothing(
    shell: Shell, engine: FakeExecutor
) -> None:
    cell = shell("%triton_bench --help")
    assert (cell.value, cell.error) == (None, None)
    assert "%triton_bench softmax v1 v2 --sizes medium,large" in cell.shown()
    assert "| `--runs N` | timed runs at each size (default: 10) |" in cell.shown("text/markdown")
    assert engine.jobs == []


def test_help_of_a_cell_magic_saves_nothing(shell: Shell, lab: Lab) -> None:
    cell = shell("%%triton_kernel softmax v1 -h\nx = 1")
    assert "%%triton_kernel OP VERSION" in cell.shown()
    assert lab.versions("softmax") == ()


def test_every_magic_has_help_that_names_all_its_arguments(shell: Shell) -> None:
    manager = shell.shell.magics_manager
    ours = {**manager.magics["line"], **manager.magics["cell"]}
    ours = {name: f for name, f in ours.items() if name.startswith("triton_")}
    assert set(ours) == {f"triton_{name}" for name in (*verbs.names(), "panel")}
    for name, function in ours.items():
        assert f"%{name}" in function.__doc__
        assert "--out NAME" in function.__doc__
        assert "Example:" in function.__doc__


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("%triton_bench softmax --sizs small", "Did you mean '--sizes'?"),
        ("%triton_bench softmax --size small", "Did you mean '--sizes'?"),
        ("%triton_validate softmax v1 --quik", "Did you mean '--quick'?"),
        ("%triton_run softmax", "required: VERSION"),
        ("%triton_run softmax v1 --shape 3y4", "'3y4' is no shape: write 257x1023"),
        ("%triton_run softmax v1 --shape 0x4", "'0x4' is no shape: write 257x1023"),
        ("%triton_bench softmax --runs many", "invalid int value: 'many'"),
        ("%triton_ref it's", "no closing quotation"),
        ("%triton_best softmax v1 v2", "unrecognized arguments: v2"),
    ],
)
def test_a_line_that_does_not_fit_is_a_usage_error(shell: Shell, line: str, hint: str) -> None:
    cell = shell(line)
    assert type(cell.error) is UsageError
    assert hint in str(cell.error)
    assert f"Help: {line.split(maxsplit=1)[0]} --help" in str(cell.error)


@pytest.mark.parametrize(
    ("line", "error", "hint"),
    [
        ("%triton_op sofmax", UnknownOp, "Did you mean 'softmax'?"),
        ("%triton_run softmax v1 --size smal", UnknownName, "Did you mean 'small'?"),
        ("%triton_bench softmax v1", IllegalStep, "%triton_validate softmax v1"),
        ("%triton_best softmax", UnknownVersion, "validated in full"),
    ],
)
def test_what_a_user_can_mend_is_one_line_of_our_own(
    shell: Shell, line: str, error: type[Exception], hint: str
) -> None:
    shell.write("v1")
    cell = shell(line)
    assert type(cell.error) is error
    assert len(cell.lines) == 1
    assert cell.lines[0].startswith(f"{error.__name__}: {cell.error}")
    assert hint in cell.lines[0]


def test_traceback_shows_every_frame_of_an_error_of_ours(shell: Shell) -> None:
    cell = shell("%triton_run softmax v1 --traceback")
    assert isinstance(cell.error, UnknownVersion)
    assert not hasattr(cell.error, "_render_traceback_")
    frames = [f.name for f in traceback.extract_tb(cell.error.__traceback__)]
    assert {"__call__", "perform", "run", "_resolve_version"} <= set(frames)


def test_traceback_shows_what_the_kernels_own_process_raised(
    shell: Shell, engine: FakeExecutor
) -> None:
    inner = "Traceback (most recent call last):\n" + "".join(f"  frame {n}\n" for n in range(30))
    error = KernelError(
        kind="RuntimeError", message="boom", line=5, column=12, cell_line=6, file_line=8,
        file="kernels/softmax/v1_baseline.py", code="    return x  # v1", traceback=inner,
    )  # fmt: skip
    shell.write("v1")

    def raises(job: RunJob) -> Outcome:
        result = engine._run(job).evolve(status=Status.RUNTIME_ERROR, error=error)
        return Outcome(status="finished", answer=result)

    engine.answer = raises
    alone = shell("%triton_run softmax v1 --traceback").lines
    assert (alone[1], alone[-1].strip()) == ("whole traceback:", "frame 29")
    engine.answer = raises
    short = shell("%triton_run softmax v1 --quiet").lines
    assert "cell line 6 · kernels/softmax/v1_baseline.py:8" in short
    at = next(i for i, line in enumerate(short) if "return x  # v1" in line)
    assert short[at + 1].index("^") == short[at].index("x  # v1")
    assert not [line for line in short if "frame 29" in line]
    engine.answer = raises
    long = shell("%triton_run softmax v1 --quiet --traceback").lines
    assert long[: len(short) - 1] == short[:-1]
    assert [line for line in long if "frame 29" in line]


def test_a_syntax_error_names_the_line_of_the_cell(shell: Shell) -> None:
    cell = shell("%%triton_kernel softmax v1\nimport triton\ndef f(:\n    pass\n")
    assert type(cell.error) is BadKernelSource
    assert cell.lines == ["BadKernelSource: cell line 3: invalid syntax: def f(:"]


@pytest.mark.parametrize(
    ("above", "offset"), [("", 1), ("\n\n", 3), ("%%time\n", 2), ("\n%%time\n\n", 4)]
)
def test_lines_are_counted_as_the_cells_editor_does(
    shell: Shell, lab: Lab, above: str, offset: int
) -> None:
    shell(f"{above}%%triton_kernel softmax v1 --no-compile\n{KERNEL}")
    assert lab.source("softmax", "v1").cell_offset == offset


def test_an_internal_error_hides_the_packages_frames(shell: Shell, engine: FakeExecutor) -> None:
    def dies(_job: object) -> Outcome:
        raise WorkerError("no worker can be started")

    shell.write("v1")
    engine.answer = dies
    assert shell("%triton_validate softmax v1").lines == ["WorkerError: no worker can be started"]
