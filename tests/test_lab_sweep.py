"""Sweeps: the grid, who is best, what is written, who ends its process, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_engine import FakeEngine, environment
from triton_magics.engine import Outcome
from triton_magics.engine.protocol import SweepJob
from triton_magics.errors import (
    BadValue,
    IllegalStep,
    UnknownName,
    UnknownVersion,
)
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus, Configuration, Status, Sweep
from triton_magics.report import headline, to_text, view

SOURCE = """import triton

BLOCK_SIZE = 1024


@triton.jit
def kernel(x_ptr, BLOCK: triton.language.constexpr):
    pass


def triton_softmax(x):
    kernel[(1,)](x, BLOCK=BLOCK_SIZE)
    return x
"""
GRID = {"BLOCK_SIZE": (512, 1024, 2048), "num_warps": (4, 8)}


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeEngine) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine) as made:
        made.op("softmax")
        made.write("softmax", "v2", SOURCE)
        yield made


def by_block(settings: dict[str, Any]) -> float | CaseStatus:
    """512 is fastest, and wrong; then 2048."""
    if settings["BLOCK_SIZE"] == 512:
        return CaseStatus.WRONG_VALUES
    return 3e4 / settings["BLOCK_SIZE"] + settings["num_warps"]


def test_every_point_of_the_grid_is_a_source_of_its_own(lab: Lab, engine: FakeEngine) -> None:
    lab.sweep("softmax", "v2", GRID, size="medium", runs=5, seed=7)
    job = engine.jobs[-1]
    assert isinstance(job, SweepJob)
    assert (job.size, job.runs, job.seed, job.cold, job.target) == ("medium", 5, 7, True, None)
    settings = [tuple(p.settings.items()) for p in job.points]
    assert settings == [
        (("BLOCK_SIZE", b), ("num_warps", w)) for b in (512, 1024, 2048) for w in (4, 8)
    ]
    assert "BLOCK_SIZE = 512\n" in job.points[0].source
    assert "BLOCK=BLOCK_SIZE, num_warps=8)" in job.points[1].source
    assert len({p.sha256 for p in job.points}) == 6


def test_the_best_is_the_fastest_that_is_right(lab: Lab, engine: FakeEngine) -> None:
    engine.sweep_us = by_block
    made = lab.sweep("softmax", "v2", GRID)
    assert made.best is not None
    assert made.best.settings == {"BLOCK_SIZE": 2048, "num_warps": 4}
    assert made.standing == {"BLOCK_SIZE": 1024, "num_warps": 4}  # the default, not written there
    assert made.written is None
    assert [c.status for c in made.configurations[:2]] == [CaseStatus.WRONG_VALUES] * 2
    assert lab.last == made
    told = to_text(view(made), width=200)
    assert headline(made).startswith("✓ BEST  softmax v2: BLOCK_SIZE=2048 num_warps=4 takes 18.6")
    assert "%triton_sweep softmax v2 BLOCK_SIZE=2048 num_warps=4 --size large --write" in told
    assert told.count("wrong values") >= 2


def test_as_it_stands_is_the_point_that_the_version_is(lab: Lab, engine: FakeEngine) -> None:
    engine.sweep_us = lambda s: 4e4 / s["BLOCK_SIZE"]
    made = lab.sweep("softmax", "v2", {"BLOCK_SIZE": (512, 1024, 2048)})
    assert made.as_it_stands is not None
    assert made.as_it_stands.settings == {"BLOCK_SIZE": 1024}
    assert "2.00x as fast as the version as it stands (BLOCK_SIZE=1024)" in headline(made)
    same = lab.sweep("softmax", "v2", {"BLOCK_SIZE": (512, 1024)}, write=True)
    assert same.written is None
    assert "as the version stands" in headline(same)
    assert lab.versions("softmax") == ("v2_tiling",)


def test_write_makes_the_best_a_version_that_must_be_validated(
    lab: Lab, engine: FakeEngine
) -> None:
    engine.sweep_us = by_block
    made = lab.sweep("softmax", "v2", GRID, write=True)
    assert made.written == "v3_swept"
    source = lab.source("softmax", "v3").source
    assert source == SOURCE.replace("= 1024", "= 2048").replace(
        "BLOCK=BLOCK_SIZE", "BLOCK=BLOCK_SIZE, num_warps=4"
    )
    assert "%triton_validate softmax v3" in to_text(view(made))
    with pytest.raises(IllegalStep, match="v3 has not passed"):
        lab.bench("softmax", "v3")


def test_a_sweep_is_kept_with_its_version(lab: Lab, tmp_path: Path, engine: FakeEngine) -> None:
    made = lab.sweep("softmax", "v2", GRID)
    with Lab(tmp_path, engine=engine) as again:
        events = again._desk.workspace.events("softmax", verbs=("swept",))
        (event,) = events
    assert event.result == made
    assert (event.version, event.attempt) == ("v2_tiling", 1)


def test_without_a_gpu_it_compiles_and_says_so(tmp_path: Path) -> None:
    engine = FakeEngine("interpreter")
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        lab.write("softmax", "v2", SOURCE)
        made = lab.sweep("softmax", "v2", GRID)
        assert engine.jobs[-1].target == 90
        assert (made.clock, made.best) == (None, None)
        assert "no GPU here, so none was checked or timed" in headline(made)
        jobs = len(engine.jobs)
        with pytest.raises(IllegalStep, match="without a GPU nothing is timed"):
            lab.sweep("softmax", "v2", GRID, write=True)
        assert len(engine.jobs) == jobs


# ----------------------------------------------------------------------- who ends its process


def lost(job: SweepJob, status: str, at: int) -> Outcome:
    """The process ended at that point, those before it were right."""
    done = tuple(
        Configuration(settings=p.settings, status=CaseStatus.PASSED) for p in job.points[:at]
    )
    stage = "checking " + Configuration(
        settings=job.points[at].settings, status=CaseStatus.NOT_RUN
    ).label  # fmt: skip
    return Outcome(
        status=status, stage=stage, configurations=done, detail="no answer in 20 s",
        environment=environment("gpu"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "status"), [("timeout", CaseStatus.TIMEOUT), ("crashed", CaseStatus.CRASHED)]
)
def test_who_ends_the_process_is_left_out_and_the_rest_is_swept(
    lab: Lab, engine: FakeEngine, ending: str, status: CaseStatus
) -> None:
    engine.answer = lambda job: lost(job, ending, 3)
    made = lab.sweep("softmax", "v2", GRID)
    first, second = engine.jobs[-2:]
    assert [p for p in first.points if p not in second.points] == [first.points[3]]
    assert made.status is Status.PASSED
    assert len(made.configurations) == 6
    (culprit,) = [c for c in made.configurations if c.status is status]
    assert culprit.settings == {"BLOCK_SIZE": 1024, "num_warps": 8}
    assert len(made.timed) == 5
    assert "no answer in 20 s" in to_text(view(made))


def test_who_breaks_the_gpu_is_left_out_and_the_rest_is_swept(lab: Lab, engine: FakeEngine) -> None:
    def broken(job: SweepJob) -> Outcome:
        made = engine._sweep(job)
        first, *rest = made.configurations
        bad = first.model_copy(update={"status": CaseStatus.RUNTIME_ERROR, "timing": None})
        told = f"{first.label} left the GPU's context unusable"
        update = {
            "status": Status.CRASHED, "message": told,
            "configurations": (bad, *(c.model_copy(update={"timing": None}) for c in rest)),
        }  # fmt: skip
        return Outcome(status="finished", answer=made.model_copy(update=update))

    engine.answer = broken
    made = lab.sweep("softmax", "v2", GRID)
    assert made.status is Status.PASSED
    assert [c.status for c in made.configurations].count(CaseStatus.RUNTIME_ERROR) == 1
    assert len(made.timed) == 5


def test_an_interrupt_keeps_what_was_checked_and_goes_on_up(lab: Lab, engine: FakeEngine) -> None:
    engine.answer = lambda job: lost(job, "interrupted", 2)
    with pytest.raises(KeyboardInterrupt):
        lab.sweep("softmax", "v2", GRID)
    assert isinstance(lab.last, Sweep)
    assert [c.status for c in lab.last.configurations[:3]] == [
        CaseStatus.PASSED, CaseStatus.PASSED, CaseStatus.INTERRUPTED,
    ]  # fmt: skip
    assert len(engine.jobs) == 2  # the compilation of what was written, and this


# ---------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("knobs", "options", "error", "words"),
    [
        ({"BLOCKSIZE": (1,)}, {}, UnknownName, "Did you mean 'BLOCK_SIZE'"),
        ({"BLOCK": (1,)}, {}, UnknownName, "the launch takes it from BLOCK_SIZE"),
        ({"BLOCK_SIZE": ("x",)}, {}, BadValue, "BLOCK_SIZE=x: BLOCK_SIZE is 1024"),
        ({"num_warps": (-4,)}, {}, BadValue, "num_warps=-4: write a whole number from 1"),
        ({"BLOCK_SIZE": ()}, {}, BadValue, "name its values, BLOCK_SIZE=256,512"),
        ({}, {}, BadValue, r"name what to try.*BLOCK_SIZE \(1024\)"),
        (
            {"BLOCK_SIZE": tuple(range(20)), "num_warps": tuple(range(1, 15))}, {}, BadValue,
            "20 x 14 = 280 configurations, at most 256",
        ),
        (GRID, {"size": "larg"}, UnknownName, "Did you mean 'large'"),
        (GRID, {"runs": 0}, BadValue, "runs=0"),
        (GRID, {"dtype": "float3"}, UnknownName, "Did you mean 'float32'"),
    ],
)  # fmt: skip
def test_what_can_not_be_swept_is_refused_and_nothing_runs(
    lab: Lab,
    engine: FakeEngine,
    knobs: dict[str, Any],
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    jobs = len(engine.jobs)
    with pytest.raises(error, match=words):
        lab.sweep("softmax", "v2", knobs, **options)
    assert len(engine.jobs) == jobs


def test_an_unknown_version_is_told(lab: Lab) -> None:
    with pytest.raises(UnknownVersion, match="v7"):
        lab.sweep("softmax", "v7", GRID)


def test_what_can_be_swept_is_told_for_completion(lab: Lab) -> None:
    found = lab.knobs("softmax", "v2")
    assert found["BLOCK_SIZE"] == 1024
    assert found["num_warps"] is None


# ------------------------------------------------------------------------------------- pictures


def test_a_plot_is_of_the_newest_benchmark_or_sweep_and_can_be_written(
    lab: Lab, engine: FakeEngine, tmp_path: Path
) -> None:
    with pytest.raises(UnknownVersion, match=r"nothing to draw yet. Next: %triton_bench softmax"):
        lab.plot("softmax")
    with pytest.raises(UnknownVersion, match="Next: %triton_sweep softmax v1 num_warps=4,8"):
        lab.plot("softmax", "sweep")
    lab.validate("softmax", "v2")
    lab.bench("softmax")
    engine.sweep_us = by_block
    swept = lab.sweep("softmax", "v2", GRID)
    assert lab.plot("softmax", "times").benchmark == lab.benchmark("softmax")
    path = tmp_path / "grid.png"
    made = lab.plot("softmax", "sweep", to=path)
    assert (made.sweep, made.path) == (swept, str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "BLOCK_SIZE=2048 num_warps=4 takes" in headline(made)
    with pytest.raises(UnknownName, match="Did you mean 'times'"):
        lab.plot("softmax", "time")
    with pytest.raises(BadValue, match="can't be written"):
        lab.plot("softmax", "times", to=tmp_path / "no" / "where.png")
    lab.bench("softmax", sizes=("small",))
    with pytest.raises(BadValue, match="times needs two sizes or more"):
        lab.plot("softmax", "times")


def test_a_log_shows_the_sweep_of_the_code_that_stands(
    lab: Lab, engine: FakeEngine, tmp_path: Path
) -> None:
    engine.sweep_us = by_block
    lab.sweep("softmax", "v2", GRID)
    lab.export("softmax")
    log = tmp_path / "logs" / "softmax_log.md"
    assert "BLOCK_SIZE=2048 num_warps=4 takes 18.6 us" in log.read_text()
    lab.write("softmax", "v2", SOURCE + "# changed\n")
    lab.export("softmax")
    assert "num_warps=4 takes" not in log.read_text()
