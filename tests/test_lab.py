# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The lab: what each verb does with what the engine says, and what it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import SOURCE, engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.config import Settings
from triton_magics.errors import BadValue, UnknownName
from triton_magics.lab import Lab
from triton_magics.model import LabState, Status, Validation, Validations


def test_showing_an_op_warms_the_compiler_and_a_worker(lab: Lab, engine: FakeExecutor) -> None:
    assert engine.warmed == ["compiler", None]


@pytest.mark.parametrize(
    ("kind", "ahead", "shapes"), [("gpu", "quick", ((3, 5),)), ("interpreter", None, ())]
)
def test_a_written_version_is_compiled_for_validation_on_a_gpu(
    lab: Lab, engine: FakeExecutor, kind: Any, ahead: str | None, shapes: Any
) -> None:
    engine.device_kind = kind
    lab.op("softmax", shapes=[(3, 5)])
    write(lab, "v1")
    assert (engine.jobs[-1].ahead, engine.jobs[-1].own_shapes) == (ahead, shapes)


def test_three_validated_and_timed_versions_finish_the_op(lab: Lab, engine: FakeExecutor) -> None:
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


def test_all_validates_every_version(lab: Lab, engine: FakeExecutor) -> None:
    first, _ = write(lab, "v1"), write(lab, "v2")
    engine.verdicts[first] = Status.FAILED
    validation = lab.validate("softmax", "all")
    assert isinstance(validation, Validations)
    assert [v.status for v in validation.validations] == [Status.FAILED, Status.PASSED]
    assert validation.status is Status.FAILED


def test_a_version_keeps_its_child_from_validation_to_benchmark(
    lab: Lab, engine: FakeExecutor
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax", "v1")
    validated, timed = engine.keys[-2:]
    assert validated == timed != ""


def test_state_survives_a_new_lab_on_the_same_folder(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    before = lab.status("softmax")
    with Lab(tmp_path, engine=engine) as again:
        assert again.status("softmax") == before


def test_other_code_is_a_new_attempt_and_the_old_is_restorable(
    lab: Lab,
) -> None:
    first = write(lab, "v1")
    second = write(lab, "v1", "changed")
    assert first != second
    assert [s.attempt for s in lab.attempts("softmax", "v1")] == [1, 2]
    restored = lab.restore("softmax", "v1", 1)
    assert (restored.source.sha256, restored.source.attempt) == (first, 3)


def test_an_edited_file_is_validated_as_a_new_attempt(lab: Lab, tmp_path: Path) -> None:
    write(lab, "v1")
    path = tmp_path / "kernels" / "softmax" / "v1_baseline.py"
    path.write_text(path.read_text().replace("return x", "return x + 0"))
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert validation.attempt == 2
    assert "return x + 0" in lab.source("softmax", "v1").source
    assert any("edited" in note for note in lab.notes())


def test_an_alias_is_the_op_and_its_folder(lab: Lab, tmp_path: Path) -> None:
    result = lab.write("add", "v1", "def triton_add(x, y, alpha=1.0):\n    return x\n")
    assert (result.source.op, result.source.entry) == ("vector_add", "triton_add")
    assert (tmp_path / "kernels" / "vector_add" / "v1_baseline.py").is_file()


def test_the_compile_target_is_the_gpu_or_the_setting(lab: Lab, engine: FakeExecutor) -> None:
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
    source = lab.write("softmax", "v1", SOURCE)
    assert source.next_version == "v2_tiling"
    assert source.next_technique
    assert "BLOCK" in str(source.block_hint)


def test_export_writes_the_log_in_four_forms(lab: Lab, tmp_path: Path) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    log_files = lab.export("softmax")
    assert [Path(p).name for p in log_files.paths] == [
        "softmax_log.md", "softmax_log.ipynb", "softmax_log.html", "softmax_log.jsonl",
    ]  # fmt: skip
    assert all(Path(p).stat().st_size > 500 for p in log_files.paths)


def test_the_state_of_the_whole_lab_names_every_op(lab: Lab) -> None:
    write(lab, "v1")
    lab.op("gelu")
    state = lab.status()
    assert isinstance(state, LabState)
    assert {o.op: o.state for o in state.ops} == {"softmax": "evaluation", "gelu": "write"}


def test_close_twice_is_fine(tmp_path: Path, engine: FakeExecutor) -> None:
    lab = Lab(tmp_path, engine=engine)
    lab.close()
    lab.close()
    assert engine.closed == 2


def test_a_plan_needs_no_version_and_has_the_seed_of_validate(
    lab: Lab, engine: FakeExecutor
) -> None:
    result = lab.plan("softmax", dtypes=("float16",), plan="quick", seed=11)
    assert (result.plan, result.seed, result.dtypes) == ("quick", 11, ("float16",))
    assert {c.dtype for c in result.run_cases} == {"float16"}
    assert lab.last is result
    with pytest.raises(UnknownName, match="no dtype 'float8'"):
        lab.plan("softmax", dtypes=("float8",))


def test_own_shapes_of_an_op_join_its_plan(lab: Lab, engine: FakeExecutor, tmp_path: Path) -> None:
    assert lab.op("softmax", shapes=((8192, 151936), (3, 5))).own_shapes == ((8192, 151936), (3, 5))
    assert lab.op("gelu").own_shapes == ()
    assert (8192, 151936) in {c.shape for c in lab.plan("softmax").cases}
    write(lab, "v1")
    lab.validate("softmax", "v1")
    assert engine.jobs[-1].own_shapes == ((8192, 151936), (3, 5))
    assert lab.op("softmax", no_shapes=((8192, 151936),)).own_shapes == ((3, 5),)
    with pytest.raises(UnknownName, match="has no own shape 7x7; it has 3x5"):
        lab.op("softmax", no_shapes=((7, 7),))
    lab.close()
    with Lab(tmp_path, engine=FakeExecutor(), settings=Settings()) as again:
        assert again.op("softmax").own_shapes == ((3, 5),)


@pytest.mark.parametrize("name", ["engine", "executor"])
def test_an_address_in_place_of_an_executor_is_refused(tmp_path: Path, name: str) -> None:
    address: Any = {name: "https://box:8000"}
    with pytest.raises(BadValue, match=r"settings=Settings\(engine='https://box:8000'\)"):
        Lab(tmp_path / "none", **address)
    assert not (tmp_path / "none").exists()
