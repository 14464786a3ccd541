# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The version to ship: the fastest, or the one that was chosen by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.config import Settings
from triton_magics.errors import BadValue, IllegalStep, UnknownVersion, WorkspaceError
from triton_magics.lab import Lab
from triton_magics.model import Status
from triton_magics.verbs._phrase import as_command


def test_without_a_gpu_best_is_provisional_without_speedup(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor("interpreter")) as lab:
        lab.op("softmax")
        for version in ("v1", "v2"):
            write(lab, version)
            lab.validate("softmax", version)
        benchmark = lab.bench("softmax")
        assert benchmark.speedup("v2") is None
        assert "torch" not in benchmark.providers
        best = lab.best("softmax", now=True)
        assert best.source.version == "v2_tiling"
        assert best.provisional == "not ranked: no times on a GPU"


def test_a_chosen_version_stays_until_it_changes(lab: Lab, engine: FakeExecutor) -> None:
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
    with pytest.raises(IllegalStep, match="softmax v1: not yet validated"):
        lab.best("softmax", "v1", now=True)
    with pytest.raises(UnknownVersion, match="v7"):
        lab.best("softmax", "v7", now=True)
    with pytest.raises(BadValue, match="names no version"):
        lab.best("softmax", now=True, why="it is nice")
    with pytest.raises(BadValue, match="both choose"):
        lab.best("softmax", "v1", now=True, fastest=True)
    assert [v.best for v in lab.status("softmax").versions] == [False]


def test_unknown_version_is_reported_before_missing_steps(lab: Lab) -> None:
    write(lab, "v1")
    with pytest.raises(UnknownVersion, match="softmax has no v9"):
        lab.best("softmax", "v9")
    with pytest.raises(BadValue, match="names no version"):
        lab.best("softmax", why="it is short")
    with pytest.raises(IllegalStep, match="v1: not yet validated"):
        lab.best("softmax", "v1")


def test_best_waits_for_something_that_passed(lab: Lab) -> None:
    write(lab, "v1")
    for now in (False, True):
        with pytest.raises(UnknownVersion, match="no version of softmax is validated in full"):
            lab.best("softmax", now=now)


def test_a_later_experiment_does_not_take_the_best_away(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    crashes = write(lab, "v2_crash")
    engine.verdicts[crashes] = Status.CRASHED
    lab.validate("softmax", "v2_crash")
    best = lab.best("softmax")
    assert best.source.version == "v1_baseline"
    assert best.provisional.startswith("softmax: workflow unfinished (2 of 3")
    lab.best("softmax", "v1", why="it is right")
    assert lab.best("softmax").by_hand
    assert not lab.best("softmax", fastest=True).by_hand


def test_strict_best_waits_for_the_end(tmp_path: Path, engine: FakeExecutor) -> None:
    with Lab(tmp_path, engine=engine, settings=Settings(), strict=True) as strict:
        strict.op("softmax")
        write(strict, "v1")
        strict.validate("softmax", "v1")
        with pytest.raises(IllegalStep, match="1 of 3 versions written"):
            strict.best("softmax")
        assert strict.best("softmax", now=True).source.version == "v1_baseline"


def test_reason_without_a_version_suggests_the_whole_step(lab: Lab) -> None:
    with pytest.raises(BadValue, match="the reason 'it is short' names no version") as refused:
        lab.best("softmax", why="it is short")
    step = refused.value.next_step
    assert step is not None
    assert as_command(step) == "triton-magics best softmax v2 --why 'it is short'"


def test_the_best_version_is_imported_from_the_ops_package(lab: Lab) -> None:
    lab.write("softmax", "v1", "def triton_softmax(x):\n    return x\n")
    lab.validate("softmax", "v1")
    code = "from kernels.softmax import best; print(best('x'), best.__module__)"
    command = [sys.executable, "-c", code]

    def run_import() -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=lab.path, capture_output=True, text=True, check=False)

    assert "cannot import name 'best'" in run_import().stderr
    lab.best("softmax")
    assert run_import().stdout == "x kernels.softmax.v1_baseline\n"
    lab.best("softmax", "v1", why='he said "fast" \\ short')
    assert run_import().stdout == "x kernels.softmax.v1_baseline\n"


def test_a_file_of_the_users_own_is_not_replaced_by_the_choice(lab: Lab) -> None:
    write(lab, "v1")
    lab.validate("softmax", "v1")
    own = lab.path / "kernels" / "softmax" / "chosen.py"
    own.write_text("mine = 1\n")
    with pytest.raises(WorkspaceError, match="kernels/softmax/chosen.py was not written by"):
        lab.best("softmax")
    assert own.read_text() == "mine = 1\n"
