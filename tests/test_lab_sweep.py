"""Sweeps: the grid, who is best, what is written, who ends its process, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor, environment
from triton_magics import knowledge, verbs
from triton_magics.errors import (
    BadValue,
    IllegalStep,
    UnknownName,
    UnknownVersion,
)
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import SweepJob
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.languages.python_source import sha256_of
from triton_magics.model import CaseStatus, Configuration, Status, Sweep
from triton_magics.next_step import NextStep
from triton_magics.rendering import headline, to_text, view

ROOT = Path(__file__).parents[1]
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
def engine() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def lab(tmp_path: Path, engine: FakeExecutor) -> Iterator[Lab]:
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        lab.write("softmax", "v2", SOURCE)
        yield lab


def by_block(settings: dict[str, Any]) -> float | CaseStatus:
    """Return the time of a block: 512 is fastest but wrong, then 2048."""
    if settings["BLOCK_SIZE"] == 512:
        return CaseStatus.WRONG_VALUES
    return 3e4 / settings["BLOCK_SIZE"] + settings["num_warps"]


def sweep_jobs(engine: FakeExecutor) -> list[SweepJob]:
    return [job for job in engine.jobs if isinstance(job, SweepJob)]


def test_every_point_of_the_grid_is_a_source_of_its_own(lab: Lab, engine: FakeExecutor) -> None:
    lab.sweep("softmax", "v2", GRID, size="medium", runs=5, seed=7)
    (job,) = sweep_jobs(engine)
    assert (job.size, job.runs, job.seed, job.cold, job.target) == ("medium", 5, 7, True, None)
    settings = [tuple(p.settings.items()) for p in job.points]
    assert settings == [
        (("BLOCK_SIZE", b), ("num_warps", w)) for b in (512, 1024, 2048) for w in (4, 8)
    ]
    assert "BLOCK_SIZE = 512\n" in job.points[0].source
    assert "BLOCK=BLOCK_SIZE, num_warps=8)" in job.points[1].source
    assert len({p.sha256 for p in job.points}) == 6


def test_the_best_is_the_fastest_that_is_right(lab: Lab, engine: FakeExecutor) -> None:
    engine.sweep_us = by_block
    result = lab.sweep("softmax", "v2", GRID)
    assert result.best is not None
    assert result.best.settings == {"BLOCK_SIZE": 2048, "num_warps": 4}
    assert result.standing == {"BLOCK_SIZE": 1024, "num_warps": 4}  # the default, not written there
    assert result.written is None
    assert [c.status for c in result.configurations[:2]] == [CaseStatus.WRONG_VALUES] * 2
    assert lab.last == result
    text = to_text(view(result), width=200)
    assert headline(result).startswith("✓ BEST  softmax v2: BLOCK_SIZE=2048 num_warps=4 takes 18.6")
    assert "sweep softmax v2 BLOCK_SIZE=2048 num_warps=4 large True" in text
    assert text.count("wrong values") >= 2


def test_as_it_stands_is_the_point_that_the_version_is(lab: Lab, engine: FakeExecutor) -> None:
    engine.sweep_us = lambda s: 4e4 / s["BLOCK_SIZE"]
    result = lab.sweep("softmax", "v2", {"BLOCK_SIZE": (512, 1024, 2048)})
    assert result.written_configuration is not None
    assert result.written_configuration.settings == {"BLOCK_SIZE": 1024}
    assert "2.00x as fast as the current settings (BLOCK_SIZE=1024)" in headline(result)
    same = lab.sweep("softmax", "v2", {"BLOCK_SIZE": (512, 1024)}, write=True)
    assert same.written is None
    assert "the current settings" in headline(same)
    assert lab.versions("softmax") == ("v2_tiling",)


def test_write_makes_the_best_a_version_that_passed_in_full(lab: Lab, engine: FakeExecutor) -> None:
    engine.sweep_us = by_block
    result = lab.sweep("softmax", "v2", GRID, write=True)
    assert result.written == "v3_swept"
    source = lab.source("softmax", "v3").source
    assert source == SOURCE.replace("= 1024", "= 2048").replace(
        "BLOCK=BLOCK_SIZE", "BLOCK=BLOCK_SIZE, num_warps=4"
    )
    text = to_text(view(result))
    assert "the best passed the full plan, 9 cases" in text
    assert "bench softmax" in text
    validation = lab.validation("softmax", "v3")
    assert validation is not None
    assert (validation.sha256, validation.coverage.is_full) == (sha256_of(source), True)
    assert lab.bench("softmax", "v3").passed


def swept(**values: Any) -> str:
    """Return the hash of the source with these values."""
    return sha256_of(
        SOURCE.replace("= 1024", f"= {values['BLOCK_SIZE']}").replace(
            "BLOCK=BLOCK_SIZE", f"BLOCK=BLOCK_SIZE, num_warps={values['num_warps']}"
        )
    )


def test_a_best_that_fails_the_full_plan_is_none(lab: Lab, engine: FakeExecutor) -> None:
    engine.sweep_us = by_block
    engine.verdicts[swept(BLOCK_SIZE=2048, num_warps=4)] = Status.FAILED
    result = lab.sweep("softmax", "v2", GRID)
    assert result.best is not None
    assert result.best.settings == {"BLOCK_SIZE": 2048, "num_warps": 8}
    assert result.best_cases == 9
    failed = next(c for c in result.configurations if c.label == "BLOCK_SIZE=2048 num_warps=4")
    assert failed.status is CaseStatus.WRONG_VALUES
    assert "the full plan failed it: small 256x256 float32: wrong values" in to_text(
        view(result), width=400
    )


def test_no_best_where_the_full_plan_fails_every_one(lab: Lab, engine: FakeExecutor) -> None:
    for n in (4, 8):
        engine.verdicts[swept(BLOCK_SIZE=2048, num_warps=n)] = Status.FAILED
    result = lab.sweep("softmax", "v2", {"BLOCK_SIZE": (2048,), "num_warps": (4, 8)}, write=True)
    assert (result.status, result.best, result.written) == (Status.FAILED, None, None)
    assert "the full plan failed each configuration" in to_text(view(result))


def test_several_devices_share_the_points(lab: Lab, engine: FakeExecutor) -> None:
    engine.capacity, engine.sweep_us = 2, by_block
    grid = {"BLOCK_SIZE": (1024, 2048, 4096), "num_warps": (1, 2, 4, 8)}
    steps: list[Progress] = []
    engine.steps = (Progress(nonce="", stage="compiling", done=1, total=6),)
    lab.on_progress = steps.append
    result = lab.sweep("softmax", "v2", grid)
    *shares, last = sweep_jobs(engine)
    assert sorted(len(job.points) for job in shares) == [6, 6]
    assert len({p.sha256 for job in shares for p in job.points}) == 12
    assert len(last.points) == len(result.raced) == 4
    assert result.best is not None
    assert result.best.settings == {"BLOCK_SIZE": 4096, "num_warps": 1}
    assert [c.settings for c in result.configurations] == _every(grid)
    assert "compared by the ratios to torch; the fastest 4 timed again" in to_text(view(result))
    assert (2, 12) in {(s.done, s.total) for s in steps}


def _every(grid: dict[str, tuple[int, ...]]) -> list[dict[str, int]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def test_sweep_is_stored_with_its_version(lab: Lab, tmp_path: Path, engine: FakeExecutor) -> None:
    value = lab.sweep("softmax", "v2", GRID)
    with Lab(tmp_path, engine=engine) as again:
        events = again.session.workspace.events("softmax", verbs=("swept",))
        (event,) = events
    assert event.result == value
    assert (event.version, event.attempt) == ("v2_tiling", 1)


def test_without_a_gpu_it_compiles_and_says_so(tmp_path: Path) -> None:
    engine = FakeExecutor("interpreter")
    with Lab(tmp_path, engine=engine) as lab:
        lab.op("softmax")
        lab.write("softmax", "v2", SOURCE)
        result = lab.sweep("softmax", "v2", GRID)
        assert engine.jobs[-1].target == 90
        assert (result.clock, result.best) == (None, None)
        assert "no GPU here, so none was checked or timed" in headline(result)
        jobs = len(engine.jobs)
        with pytest.raises(IllegalStep, match="without a GPU nothing is timed"):
            lab.sweep("softmax", "v2", GRID, write=True)
        assert len(engine.jobs) == jobs


# ----------------------------------------------------------------------- who ends its process


def lost(job: SweepJob, status: str, at: int) -> Outcome:
    """Return a lost process after that point; the earlier ones are right."""
    done = tuple(
        Configuration(settings=p.settings, status=CaseStatus.PASSED) for p in job.points[:at]
    )
    return Outcome(
        status=status, stage="checking", settings=job.points[at].settings, configurations=done,
        detail="no answer in 20 s",
        environment=environment("gpu"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ending", "status"), [("timeout", CaseStatus.TIMEOUT), ("crashed", CaseStatus.CRASHED)]
)
def test_who_ends_the_process_is_left_out_and_the_rest_is_swept(
    lab: Lab, engine: FakeExecutor, ending: str, status: CaseStatus
) -> None:
    engine.answer = lambda job: lost(job, ending, 3)
    result = lab.sweep("softmax", "v2", GRID)
    first, second = sweep_jobs(engine)
    assert [p for p in first.points if p not in second.points] == [first.points[3]]
    assert result.status is Status.PASSED
    assert len(result.configurations) == 6
    (culprit,) = [c for c in result.configurations if c.status is status]
    assert culprit.settings == {"BLOCK_SIZE": 1024, "num_warps": 8}
    assert len(result.timed) == 5
    assert "no answer in 20 s" in to_text(view(result))


def test_who_breaks_the_gpu_is_left_out_and_the_rest_is_swept(
    lab: Lab, engine: FakeExecutor
) -> None:
    def broken(job: SweepJob) -> Outcome:
        result = engine._sweep(job)
        first, *rest = result.configurations
        bad = first.evolve(status=CaseStatus.RUNTIME_ERROR, timing=None)
        messages = f"{first.label} is to blame"
        update = {
            "status": Status.CRASHED, "message": messages, "culprit": first.settings,
            "configurations": (bad, *(c.evolve(timing=None) for c in rest)),
        }  # fmt: skip
        return Outcome(status="finished", answer=result.evolve(**update))

    engine.answer = broken
    result = lab.sweep("softmax", "v2", GRID)
    assert result.status is Status.PASSED
    assert [c.status for c in result.configurations].count(CaseStatus.RUNTIME_ERROR) == 1
    assert len(result.timed) == 5


def test_an_interrupt_keeps_what_was_checked_and_goes_on_up(lab: Lab, engine: FakeExecutor) -> None:
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
    engine: FakeExecutor,
    knobs: dict[str, Any],
    options: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    jobs = len(engine.jobs)
    with pytest.raises(error, match=words):
        lab.sweep("softmax", "v2", knobs, **options)
    assert len(engine.jobs) == jobs


def test_unknown_version_is_an_error(lab: Lab) -> None:
    with pytest.raises(UnknownVersion, match="v7"):
        lab.sweep("softmax", "v7", GRID)


def test_knobs_are_listed_for_completion(lab: Lab) -> None:
    result = lab.knobs("softmax", "v2")
    assert result["BLOCK_SIZE"] == 1024
    assert result["num_warps"] is None


# ------------------------------------------------------------------------------------- pictures


def test_a_plot_shows_the_newest_benchmark_or_sweep(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    with pytest.raises(UnknownVersion, match="nothing to draw yet") as error:
        lab.plot("softmax")
    assert error.value.next_step == NextStep("bench", {"op": "softmax"})
    with pytest.raises(UnknownVersion, match="nothing to draw yet") as error:
        lab.plot("softmax", "sweep")
    assert error.value.next_step is not None
    assert error.value.next_step.verb == "sweep"
    lab.validate("softmax", "v2")
    lab.bench("softmax")
    engine.sweep_us = by_block
    swept = lab.sweep("softmax", "v2", GRID)
    assert lab.plot("softmax", "times").benchmark == lab.benchmark("softmax")
    path = tmp_path / "grid.png"
    result = lab.plot("softmax", "sweep", to=path)
    assert (result.sweep, result.path) == (swept, str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    assert "BLOCK_SIZE=2048 num_warps=4 takes" in headline(result)
    with pytest.raises(UnknownName, match="Did you mean 'times'"):
        lab.plot("softmax", "time")
    with pytest.raises(BadValue, match="can't be written"):
        lab.plot("softmax", "times", to=tmp_path / "no" / "where.png")
    lab.bench("softmax", sizes=("small",))
    with pytest.raises(BadValue, match="times needs two sizes or more"):
        lab.plot("softmax", "times")


def test_a_log_shows_the_sweep_of_the_code_that_stands(
    lab: Lab, engine: FakeExecutor, tmp_path: Path
) -> None:
    engine.sweep_us = by_block
    lab.sweep("softmax", "v2", GRID)
    lab.export("softmax")
    log = tmp_path / "logs" / "softmax_log.md"
    assert "BLOCK_SIZE=2048 num_warps=4 takes 18.6 us" in log.read_text()
    lab.write("softmax", "v2", SOURCE + "# changed\n")
    lab.export("softmax")
    assert "num_warps=4 takes" not in log.read_text()


def test_what_is_shipped_can_be_swept(tmp_path: Path) -> None:
    quickstart = json.loads((ROOT / "notebooks" / "quickstart.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in quickstart["cells"]]
    shipped = [c.partition("\n") for c in cells if c.startswith("%%triton_kernel")]
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        for pattern in knowledge.patterns():
            lab.kernel(
                "softmax", "v1", lab.template(pattern, "softmax", "v1").source, compile=False
            )
            knobs = lab.knobs("softmax", "v1")
            assert "num_warps" in knobs
            assert [n for n, value in knobs.items() if value], pattern
        for head, _, source in shipped:
            _, op, version = head.split()[:3]
            lab.kernel(op, version, source, compile=False)
            assert "num_warps" in lab.knobs(op, version)
    assert len(shipped) >= 4


def test_the_example_of_the_help_names_knobs_of_its_template(tmp_path: Path) -> None:
    _, op, version, *settings = verbs.load("sweep").example.split()
    names = {word.partition("=")[0] for word in settings if "=" in word}
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        lab.kernel(op, version, lab.template("matmul", op, version).source, compile=False)
        assert names <= set(lab.knobs(op, version))
