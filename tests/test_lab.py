"""The lab: what each verb does with what the engine says, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_engine import FakeEngine, environment
from triton_magics.config import Settings
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import ValidateJob, WorkerFault
from triton_magics.errors import (
    AmbiguousEntry,
    BadKernelSource,
    BadName,
    BadValue,
    IllegalStep,
    Unavailable,
    UnknownName,
    UnknownOp,
    UnknownVersion,
    UserError,
    WorkerError,
    WorkspaceError,
)
from triton_magics.lab import Lab
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    LabState,
    Replay,
    Status,
    Validation,
    Validations,
)

SOURCE = "import triton\n\n\ndef triton_softmax(x):\n    return x  # {}\n"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeEngine) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine, settings=Settings()) as made:
        made.op("softmax")
        yield made


def write(lab: Lab, version: str, text: str = "as it is") -> str:
    return lab.write("softmax", version, SOURCE.format(version + text), cell_offset=1).source.sha256


# ------------------------------------------------------------------------------ made ready


def test_the_first_look_at_an_op_has_the_compiler_and_a_worker_get_ready(
    lab: Lab, engine: FakeEngine
) -> None:
    assert engine.warmed == ["compiler", None]


@pytest.mark.parametrize(
    ("kind", "ahead", "shapes"), [("gpu", "quick", ((3, 5),)), ("interpreter", None, ())]
)
def test_a_version_is_compiled_for_its_validation_where_a_gpu_will_run_that(
    lab: Lab, engine: FakeEngine, kind: Any, ahead: str | None, shapes: Any
) -> None:
    engine.device_kind = kind
    lab.op("softmax", shapes=[(3, 5)])
    write(lab, "v1")
    assert (engine.jobs[-1].ahead, engine.jobs[-1].own_shapes) == (ahead, shapes)


# -------------------------------------------------------------------------------- the main job


def test_three_versions_validated_and_timed_lead_to_the_end_and_the_fastest_is_best(
    lab: Lab, engine: FakeEngine
) -> None:
    engine.times_us = {"v1": (2, 6, 60), "v2": (2, 5, 30), "v3": (1, 5, 50)}
    states = []
    for version in ("v1", "v2", "v3"):
        write(lab, version)
        lab.validate("softmax", version)
        lab.bench("softmax")
        states.append(lab.status("softmax").state)
    assert states == ["write", "write", "end"]
    best = lab.best("softmax")
    assert best.source.version == "v2_tiling"
    assert best.final_us == pytest.approx((2 + 5 + 30) / 3)
    assert best.speedup == pytest.approx((2 + 6 + 54) / (2 + 5 + 30))
    assert best.provisional is None


def test_a_benchmark_says_means_finals_and_both_speedups(lab: Lab, engine: FakeEngine) -> None:
    engine.times_us = {"v1": (1, 3, 54)}
    write(lab, "v1")
    lab.validate("softmax", "v1")
    made = lab.bench("softmax", "v1", runs=3)
    timing = made.timing("v1", "medium")
    assert timing is not None
    assert (timing.mean_us, timing.median_us, timing.std_us) == (3, 3, 0)
    assert (timing.min_us, timing.max_us, timing.samples_us) == (3, 3, (3, 3, 3))
    assert made.final_us("torch") == pytest.approx(62 / 3)
    assert made.speedup("v1") == pytest.approx(62 / 58)
    assert made.geomean_speedup("v1") == pytest.approx((2 * 2 * 1) ** (1 / 3))


def test_without_a_gpu_there_is_no_speedup_and_best_is_provisional(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeEngine("interpreter")) as lab:
        lab.op("softmax")
        for version in ("v1", "v2"):
            write(lab, version)
            lab.validate("softmax", version)
        made = lab.bench("softmax")
        assert made.speedup("v2") is None
        assert "torch" not in made.providers
        best = lab.best("softmax", now=True)
        assert best.source.version == "v2_tiling"
        assert best.provisional == "not ranked: no times on a GPU"


def test_all_validates_every_version(lab: Lab, engine: FakeEngine) -> None:
    first, _ = write(lab, "v1"), write(lab, "v2")
    engine.verdicts[first] = Status.FAILED
    made = lab.validate("softmax", "all")
    assert isinstance(made, Validations)
    assert [v.status for v in made.validations] == [Status.FAILED, Status.PASSED]
    assert made.status is Status.FAILED


def test_bench_without_names_times_every_version_that_passed(lab: Lab, engine: FakeEngine) -> None:
    bad = write(lab, "v1")
    write(lab, "v2")
    engine.verdicts[bad] = Status.FAILED
    lab.validate("softmax", "all")
    assert lab.bench("softmax").versions == ("v2_tiling",)


def test_a_version_keeps_its_child_from_validation_to_benchmark(
    lab: Lab, engine: FakeEngine
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax", "v1")
    validated, timed = engine.keys[-2:]
    assert validated == timed != ""


def test_state_survives_a_new_lab_on_the_same_folder(
    lab: Lab, engine: FakeEngine, tmp_path: Path
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    before = lab.status("softmax")
    with Lab(tmp_path, engine=engine) as again:
        assert again.status("softmax") == before


def test_running_a_cell_again_with_other_code_is_a_new_attempt_and_the_old_one_can_come_back(
    lab: Lab,
) -> None:
    first = write(lab, "v1")
    second = write(lab, "v1", "changed")
    assert first != second
    assert [s.attempt for s in lab.attempts("softmax", "v1")] == [1, 2]
    restored = lab.restore("softmax", "v1", 1)
    assert (restored.source.sha256, restored.source.attempt) == (first, 3)


def test_a_file_that_a_person_edited_is_validated_as_a_new_attempt(
    lab: Lab, tmp_path: Path
) -> None:
    write(lab, "v1")
    path = tmp_path / "kernels" / "softmax" / "v1_baseline.py"
    path.write_text(path.read_text().replace("return x", "return x + 0"))
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert made.attempt == 2
    assert "return x + 0" in lab.source("softmax", "v1").source
    assert any("edited" in note for note in lab.notes())


def test_an_alias_is_the_op_and_its_folder(lab: Lab, tmp_path: Path) -> None:
    made = lab.write("add", "v1", "def triton_add(x, y, alpha=1.0):\n    return x\n")
    assert (made.source.op, made.source.entry) == ("vector_add", "triton_add")
    assert (tmp_path / "kernels" / "vector_add" / "v1_baseline.py").is_file()


def test_a_version_is_compiled_for_the_gpu_that_is_here_else_for_the_settings_target(
    lab: Lab, engine: FakeEngine
) -> None:
    write(lab, "v1")
    lab.settings.target = 120
    engine.target = 80
    lab.write("softmax", "v1", SOURCE.format("for it"))
    engine.target = None
    lab.write("softmax", "v1", SOURCE.format("for another"))
    lab.inspect("softmax", "v1", target="sm_100")
    lab.inspect("softmax", "v1")
    assert [(j.target, j.here) for j in engine.jobs[-4:]] == [
        (80, False), (120, False), (100, False), (120, True),
    ]  # fmt: skip
    assert engine.jobs[-1].sizes == ("small", "medium", "large")


def test_written_says_what_to_try_next(lab: Lab) -> None:
    made = lab.write("softmax", "v1", SOURCE)
    assert made.next_version == "v2_tiling"
    assert made.next_technique
    assert "BLOCK" in str(made.block_hint)


def test_export_writes_the_log_in_four_forms(lab: Lab, tmp_path: Path) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    made = lab.export("softmax")
    assert [Path(p).name for p in made.paths] == [
        "softmax_log.md", "softmax_log.ipynb", "softmax_log.html", "softmax_log.jsonl",
    ]  # fmt: skip
    assert all(Path(p).stat().st_size > 500 for p in made.paths)


def test_a_benchmark_carries_the_badges_of_its_validations_and_no_others(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1", plan="quick")
    assert lab.bench("softmax").badges == ("v1: quick",)
    assert lab.bench("softmax").badges == ("v1: quick",)


# ------------------------------------------------------------------------- what is not finished


def lost(status: str, **more: object) -> Outcome:
    cases = [Case(shape=(n, n), dtype="float32", seed=n) for n in (1, 2, 3)]
    planned = tuple(CaseResult(case=c, status=CaseStatus.NOT_RUN, reason="-") for c in cases)
    done = CaseResult(case=cases[0], status=CaseStatus.PASSED, error_share=0.1)
    given = {
        "status": status, "planned": planned, "cases": (done,),
        "stage": f"validating {cases[1].label}", "environment": environment("gpu"),
        "detail": "no answer in 20 s", **more,
    }  # fmt: skip
    return Outcome(**given)


@pytest.mark.parametrize(
    ("ending", "status", "case_status"),
    [
        ("timeout", Status.TIMEOUT, CaseStatus.TIMEOUT),
        ("crashed", Status.CRASHED, CaseStatus.CRASHED),
        ("protocol", Status.CRASHED, CaseStatus.CRASHED),
    ],
)
def test_a_lost_process_is_a_status_with_the_cases_that_were_done(
    lab: Lab, engine: FakeEngine, ending: str, status: Status, case_status: CaseStatus
) -> None:
    write(lab, "v1")
    engine.answer = lambda job: lost(ending)
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert made.status is status
    assert [c.status for c in made.cases] == [CaseStatus.PASSED, case_status, CaseStatus.NOT_RUN]
    assert "no answer in 20 s" in str(made.message)
    assert lab.validation("softmax", "v1") == made


CRASHED = "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n  File "
CRASHED += (
    '"/x/watch.py", line 9 in watch\n\nCurrent thread 0x2 [python] (most recent call first):\n'
)


@pytest.mark.parametrize(
    ("told", "at"),
    [
        ({"stack": CRASHED.replace("Current thread 0x2 [python]", "Thread 0x2")}, True),
        ({"output": CRASHED}, True),
        ({"output": "a version that prints such lines:\n"}, False),
    ],
    ids=["timeout", "crash", "neither"],
)
def test_a_lost_process_names_the_line_of_the_cell_that_it_was_in(
    lab: Lab, engine: FakeEngine, tmp_path: Path, told: dict[str, str], at: bool
) -> None:
    write(lab, "v1")
    file = tmp_path / "kernels/softmax/v1_baseline.py"
    frames = f'  File "/x/torch.py", line 3 in sum\n  File "{file}", line 7 in triton_softmax\n'
    ((name, text),) = told.items()
    engine.answer = lambda job: lost("timeout", **{name: text + frames})
    made = lab.validate("softmax", "v1")
    assert file.read_text().splitlines()[6] == "    return x  # v1as it is"
    where = ", at cell line 6 (kernels/softmax/v1_baseline.py:7): return x  # v1as it is"
    assert str(made.message).endswith(where) is at
    assert str(made.cases[1].reason).endswith(where) is at


def test_a_timeout_on_a_gpu_says_that_its_kernel_did_not_end(lab: Lab, engine: FakeEngine) -> None:
    write(lab, "v1")
    frames = '  File "/x/torch/cuda/__init__.py", line 9 in synchronize\n'
    frames += '  File "/x/run.py", line 7 in run\n'
    stack = f"{CRASHED}{frames}".replace("Current thread", "Thread")
    engine.answer = lambda job: lost("timeout", stack=stack)
    made = lab.validate("softmax", "v1")
    assert str(made.message).endswith("no answer in 20 s: a kernel on the GPU did not end")
    engine.answer = lambda job: lost("timeout")
    mute = lab.validate("softmax", "v1")
    assert str(mute.message).endswith("it hangs in the GPU's driver, or was stopped")


def test_an_interrupt_stores_what_was_done_and_goes_on_up(lab: Lab, engine: FakeEngine) -> None:
    write(lab, "v1")
    engine.answer = lambda job: lost("interrupted")
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert isinstance(lab.last, Validation)
    assert lab.last.status is Status.INTERRUPTED
    assert len(lab.last.run_cases) == 2
    assert lab.status("softmax").version("v1").attempts_failed == 0


def test_a_fault_of_ours_is_not_the_kernels(lab: Lab, engine: FakeEngine) -> None:
    write(lab, "v1")
    fault = WorkerFault(user=False, message="our bug", traceback="there")
    engine.answer = lambda job: Outcome(status="finished", answer=fault)
    with pytest.raises(WorkerError, match="our bug"):
        lab.validate("softmax", "v1")
    mend = WorkerFault(user=True, message="no dtype 'int3'")
    engine.answer = lambda job: Outcome(status="finished", answer=mend)
    with pytest.raises(UserError, match="int3"):
        lab.validate("softmax", "v1")


def test_three_failed_attempts_exhaust_a_version(lab: Lab, engine: FakeEngine) -> None:
    for i in range(3):
        engine.verdicts[write(lab, "v1", str(i))] = Status.FAILED
        made = lab.validate("softmax", "v1")
        assert isinstance(made, Validation)
        assert made.attempts_failed == i + 1
        assert lab.status("softmax").version("v1").exhausted is (i == 2)


# ------------------------------------------------------------------------------------ bad input


def test_unknown_names_are_told_with_the_nearest_one(lab: Lab) -> None:
    with pytest.raises(UnknownOp, match="sofmax.*Did you mean 'softmax'"):
        lab.op("sofmax")
    with pytest.raises(UnknownVersion, match="no version"):
        lab.validate("softmax", "v1")
    write(lab, "v1")
    with pytest.raises(UnknownVersion, match="v1_baseline"):
        lab.validate("softmax", "v2")
    with pytest.raises(UnknownName, match="smal.*small"):
        lab.run("softmax", "v1", size="smal")
    with pytest.raises(UnknownName, match="float33.*float32"):
        lab.validate("softmax", "v1", dtypes=["float33"])


@pytest.mark.parametrize("version", ["1", "v0", "v1/../..", "v1_Ä", "v1_", "V1", "v1 2", ""])
def test_a_version_that_is_none_is_refused_and_nothing_is_written(
    lab: Lab, tmp_path: Path, version: str
) -> None:
    with pytest.raises(BadName, match="v1"):
        lab.write("softmax", version, SOURCE)
    assert not (tmp_path / "kernels").exists()


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ("def triton_softmax(x):\n    return (\n", BadKernelSource, "line 2"),
        ("x = 1\n", BadKernelSource, "triton_softmax"),
        ("", BadKernelSource, "empty"),
        ("def f(x): return x\ndef g(x): return x\n", AmbiguousEntry, "f, g"),
    ],
)
def test_a_cell_that_is_no_module_with_an_entry_is_refused_and_nothing_is_lost(
    lab: Lab, tmp_path: Path, source: str, error: type[Exception], words: str
) -> None:
    kept = write(lab, "v1")
    with pytest.raises(error, match=words):
        lab.write("softmax", "v1", source)
    assert lab.source("softmax", "v1").sha256 == kept


def test_a_version_that_has_not_passed_is_not_timed(lab: Lab, engine: FakeEngine) -> None:
    write(lab, "v1")
    with pytest.raises(IllegalStep, match="v1 has not passed a validation in float32 on this GPU"):
        lab.bench("softmax", "v1")
    lab.validate("softmax", "v1", dtypes=["float32"])
    assert lab.bench("softmax", "v1").passed
    with pytest.raises(IllegalStep, match="in float16"):
        lab.bench("softmax", "v1", dtype="float16")
    write(lab, "v1", "changed")
    with pytest.raises(IllegalStep, match="has not passed"):
        lab.bench("softmax", "v1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"runs": 0}, "runs=0"), ({"runs": 5000}, "1 to 1000")],
)
def test_runs_out_of_range_are_refused(lab: Lab, arguments: dict[str, int], words: str) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    with pytest.raises(BadValue, match=words):
        lab.bench("softmax", "v1", **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"against": ("torch.compil",)}, BadValue, "Did you mean 'torch.compile'"),
        ({"against": ("torch",)}, BadValue, "torch is timed beside every version"),
        ({"against": ("v9",)}, UnknownVersion, "v9"),
        ({"against": ("module:",)}, BadValue, "module:function"),
        ({"sizes": ("huge",)}, UnknownName, "unknown size 'huge'"),
        ({"sizes": ()}, BadValue, "no size: name some of small,medium,large"),
        ({"dtype": "float23"}, UnknownName, "Did you mean 'float32'"),
        ({"budget": -1.0}, BadValue, "budget=-1: write seconds"),
        ({"timer": "grap"}, UnknownName, "Did you mean 'graph'"),
    ],
)
def test_what_can_not_be_timed_is_refused_and_nothing_runs(
    lab: Lab, engine: FakeEngine, arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    jobs = len(engine.jobs)
    with pytest.raises(error, match=words):
        lab.bench("softmax", **arguments)
    assert len(engine.jobs) == jobs


def test_against_a_version_times_every_version_and_compares_all_with_it(
    lab: Lab, engine: FakeEngine
) -> None:
    for version in ("v1", "v2", "v3"):
        write(lab, version)
        lab.validate("softmax", version)
    lab.bench("softmax", against=("v1", "torch.compile", "package.module:function"))
    job = engine.jobs[-1]
    assert [v.version for v in job.versions] == ["v1_baseline", "v2_tiling", "v3_coalesced"]
    assert job.against == ("torch.compile", "package.module:function")
    assert job.rivals == ("v1_baseline", "torch.compile", "package.module:function")
    lab.bench("softmax", "v3", against=("v1",))
    assert [v.version for v in engine.jobs[-1].versions] == ["v1_baseline", "v3_coalesced"]


def test_a_rival_that_has_not_passed_is_not_timed(lab: Lab) -> None:
    write(lab, "v1")
    write(lab, "v2")
    lab.validate("softmax", "v2")
    with pytest.raises(IllegalStep, match="v1 has not passed"):
        lab.bench("softmax", against=("v1",))
    assert lab.bench("softmax").versions == ("v2_tiling",)


def test_a_selftest_needs_no_op_and_one_that_was_lost_says_how(
    lab: Lab, engine: FakeEngine
) -> None:
    assert lab.selftest().passed
    assert engine.jobs[-1].kind == "selftest"
    engine.answer = lambda job: Outcome(status="timeout", detail="no answer in 20 s")
    made = lab.selftest()
    assert (made.status, made.message) == (Status.TIMEOUT, "no answer in 20 s")


def test_a_timer_and_a_census_are_asked_for_as_they_are_named(lab: Lab, engine: FakeEngine) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax", timer="launch", census=True)
    assert (engine.jobs[-1].timer, engine.jobs[-1].census) == ("launch", True)


def test_a_benchmark_that_was_lost_names_its_shapes_and_rivals(
    lab: Lab, engine: FakeEngine
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lost_job = Outcome(status="timeout", environment=environment("gpu"), detail="no answer")
    engine.answer = lambda job: lost_job
    made = lab.bench("softmax", sizes=("8192x100", "7x13"), against=("m:f",))
    assert engine.jobs[-1].sizes == made.sizes == ("8192x100", "7x13")
    assert made.against == ("m:f",)


def test_a_tolerance_that_is_none_is_refused(lab: Lab) -> None:
    write(lab, "v1")
    with pytest.raises(BadValue, match="rtol=2 is no tolerance"):
        lab.validate("softmax", "v1", rtol=2)


def test_a_step_out_of_order_is_a_note_for_a_person_and_an_error_if_strict(
    tmp_path: Path, engine: FakeEngine
) -> None:
    with Lab(tmp_path / "loose", engine=engine) as loose:
        write(loose, "v1")
        write(loose, "v2")
        assert any("waits for its verdict" in note for note in loose.notes())
    with Lab(tmp_path / "strict", engine=engine, strict=True) as strict:
        strict.op("softmax")
        write(strict, "v1")
        with pytest.raises(IllegalStep, match=r"allowed now: validate"):
            write(strict, "v2")
        strict.status("softmax", force_write="another idea")
        write(strict, "v2")


def test_a_version_chosen_by_hand_stays_chosen_until_it_changes_or_is_given_up(
    lab: Lab, engine: FakeEngine
) -> None:
    def chosen() -> list[str]:
        return [v.version for v in lab.status("softmax").versions if v.best]

    engine.times_us = {"v1": (2, 6, 60), "v2": (2, 5, 30), "v3": (1, 5, 50)}
    for version in ("v1", "v2", "v3"):
        write(lab, version)
        lab.validate("softmax", version)
    lab.bench("softmax")
    best = lab.best("softmax", "v3", why="the fastest at small")
    assert (best.source.version, best.by_hand) == ("v3_coalesced", True)
    assert best.reason == "chosen by hand: the fastest at small"
    assert best.final_us == pytest.approx((1 + 5 + 50) / 3)
    assert chosen() == ["v3_coalesced"]
    assert (
        "why: chosen by hand: the fastest at small"
        in Path(lab.export("softmax").paths[0]).read_text()
    )
    assert lab.best("softmax").source.version == "v3_coalesced"
    assert lab.best("softmax", fastest=True).source.version == "v2_tiling"
    assert chosen() == ["v2_tiling"]

    lab.best("softmax", "v3")
    assert chosen() == ["v3_coalesced"]
    write(lab, "v3", "another")
    assert chosen() == ["v2_tiling"]
    lab.validate("softmax", "v3")
    assert lab.best("softmax", now=True).source.version == "v2_tiling"


def test_a_version_chosen_by_hand_without_times_is_provisional(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    best = lab.best("softmax", "v1", now=True)
    assert (best.by_hand, best.provisional) == (True, "not ranked: no times on a GPU")
    assert best.final_us is None


def test_what_can_not_be_chosen_by_hand_is_refused(lab: Lab) -> None:
    write(lab, "v1")
    with pytest.raises(UnknownVersion, match="v1 has not passed its validation: validate"):
        lab.best("softmax", "v1", now=True)
    with pytest.raises(UnknownVersion, match="v7"):
        lab.best("softmax", "v7", now=True)
    with pytest.raises(BadValue, match="needs the version"):
        lab.best("softmax", now=True, why="it is nice")
    with pytest.raises(BadValue, match="both choose"):
        lab.best("softmax", "v1", now=True, fastest=True)
    assert [v.best for v in lab.status("softmax").versions] == [False]


def test_best_waits_for_the_end_and_for_something_that_passed(lab: Lab) -> None:
    write(lab, "v1")
    with pytest.raises(IllegalStep, match="1 of 3 versions written"):
        lab.best("softmax")
    with pytest.raises(UnknownVersion, match="passed"):
        lab.best("softmax", now=True)


def test_without_triton_writing_references_and_logs_work_and_the_rest_says_what_is_missing(
    tmp_path: Path,
) -> None:
    missing = "Triton is not installed: pip install 'triton-magics[kernels]'"
    with Lab(tmp_path, engine=FakeEngine(missing=missing)) as lab:
        assert lab.op("softmax").engine.missing == missing
        assert lab.write("softmax", "v1", SOURCE).compilation is None
        assert "softmax" in lab.ref("online", "softmax").markdown
        with pytest.raises(Unavailable, match="pip install"):
            lab.validate("softmax", "v1")
        assert Path(lab.export("softmax").paths[0]).is_file()


def test_a_workspace_whose_parent_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="not"):
        Lab(tmp_path / "no" / "where", engine=FakeEngine())


def test_an_own_op_may_not_take_a_shipped_name(lab: Lab) -> None:
    with pytest.raises(UserError, match="ships"):
        lab.reference("softmax", "def reference(x): return x")


def test_the_state_of_the_whole_lab_names_every_op(lab: Lab) -> None:
    write(lab, "v1")
    lab.op("gelu")
    state = lab.status()
    assert isinstance(state, LabState)
    assert {o.op: o.state for o in state.ops} == {"softmax": "evaluation", "gelu": "write"}


def test_close_twice_is_fine(tmp_path: Path, engine: FakeEngine) -> None:
    lab = Lab(tmp_path, engine=engine)
    lab.close()
    lab.close()
    assert engine.closed == 2


# ------------------------------------------------------------------- plans and shapes of one's own


def test_a_plan_needs_no_version_and_its_seed_is_the_one_that_validate_takes(
    lab: Lab, engine: FakeEngine
) -> None:
    made = lab.plan("softmax", dtypes=("float16",), plan="quick", seed=11)
    assert (made.plan, made.seed, made.dtypes) == ("quick", 11, ("float16",))
    assert {c.dtype for c in made.run_cases} == {"float16"}
    assert lab.last is made
    with pytest.raises(UnknownName, match="no dtype 'float8'"):
        lab.plan("softmax", dtypes=("float8",))


def test_shapes_of_ones_own_are_kept_per_op_join_the_plan_and_can_be_removed(
    lab: Lab, engine: FakeEngine, tmp_path: Path
) -> None:
    assert lab.op("softmax", shapes=((8192, 151936), (3, 5))).own_shapes == ((8192, 151936), (3, 5))
    assert lab.op("gelu").own_shapes == ()
    assert (8192, 151936) in {c.shape for c in lab.plan("softmax").cases}
    write(lab, "v1")
    lab.validate("softmax", "v1")
    assert engine.jobs[-1].own_shapes == ((8192, 151936), (3, 5))
    assert lab.op("softmax", no_shapes=((8192, 151936),)).own_shapes == ((3, 5),)
    with pytest.raises(UnknownName, match="keeps no shape 7x7; it keeps 3x5"):
        lab.op("softmax", no_shapes=((7, 7),))
    lab.close()
    with Lab(tmp_path, engine=FakeEngine(), settings=Settings()) as again:
        assert again.op("softmax").own_shapes == ((3, 5),)


def test_shapes_of_ones_own_are_timed_beside_the_three_sizes_and_the_final_stays(
    lab: Lab, engine: FakeEngine
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    final_us = lab.bench("softmax").final_us("v1")
    lab.op("softmax", shapes=((8192, 151936),))
    made = lab.bench("softmax")
    assert made.sizes == ("small", "medium", "large", "8192x151936")
    own = made.timing("v1", "8192x151936")
    assert own is not None
    assert (own.shape, own.mean_us) == ((8192, 151936), 800.0)
    assert made.final_us("v1") == final_us
    assert lab.bench("softmax", sizes=("7x13", "small")).sizes == ("small", "7x13")
    with pytest.raises(UnknownName, match="unknown size '7x0'"):
        lab.bench("softmax", sizes=("7x0",))


# --------------------------------------------------------------------- the line, by a replay


def failing(status: CaseStatus, reason: str, kind: str) -> Callable[[ValidateJob], Outcome]:
    """An engine's answer: two cases that failed alike, the larger first."""

    def answer(job: ValidateJob) -> Outcome:
        cases = tuple(
            CaseResult(case=Case(shape=s, dtype="float32", seed=1), status=status, reason=reason)
            for s in ((256, 256), (7, 13))
        )
        made = Validation(
            op="softmax", version=job.version.version, attempt=1, sha256=job.version.sha256,
            status=Status.FAILED, plan="full", seed=1, dtypes=("float32",), cases=cases,
            environment=environment(kind),  # type: ignore[arg-type]
        )  # fmt: skip
        return Outcome(status="finished", answer=made)

    return answer


def test_a_case_that_touched_memory_outside_on_a_gpu_is_replayed_at_the_smallest_shape(
    lab: Lab, engine: FakeEngine
) -> None:
    write(lab, "v1")
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert engine.jobs[-1].kind == "replay"
    assert engine.jobs[-1].case.shape == (7, 13)
    told = made.failed_cases[0].error
    assert told is not None
    assert told.message == "reads outside input 0"
    assert made.failed_cases[1].error is None


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "interpreter"),
        (CaseStatus.STALE, "an old answer", "gpu"),
    ],
)
def test_nothing_is_replayed_where_it_would_tell_nothing_new(
    lab: Lab, engine: FakeEngine, status: CaseStatus, reason: str, kind: str
) -> None:
    write(lab, "v1")
    engine.answer = failing(status, reason, kind)
    lab.validate("softmax", "v1")
    assert "replay" not in [job.kind for job in engine.jobs]


def test_a_verdict_stands_where_no_interpreter_can_look_for_the_line(
    lab: Lab, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_interpreter(job: object) -> None:
        raise WorkerError("the worker died before it was ready; numpy is too new")

    write(lab, "v1")
    monkeypatch.setattr(engine, "_replay", no_interpreter)
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    made = lab.validate("softmax", "v1")
    assert isinstance(made, Validation)
    assert made.failed_cases[0].status is CaseStatus.OUT_OF_BOUNDS
    assert made.failed_cases[0].error is None
    assert any("numpy is too new" in note for note in lab.notes())


def test_a_replay_that_finds_no_line_says_why(
    lab: Lab, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lab, "v1")
    why = "every access was inside its tensor"
    monkeypatch.setattr(engine, "_replay", lambda job: Replay(case=job.case, note=why))
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    lab.validate("softmax", "v1")
    assert f"no line found that touches memory outside, 7x13 float32: {why}" in lab.notes()
