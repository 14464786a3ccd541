# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The search of a large grid: near the best with a quarter of its points."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import engine, lab  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, IllegalStep
from triton_magics.lab import Lab
from triton_magics.model import CaseStatus
from triton_magics.verbs._search import GridSearch, Point

SIZES = (6, 3, 3, 5)
SOURCE = """import triton

BLOCK_SIZE = 256
ROWS = 1
STAGES = 1


def triton_softmax(x):
    return x
"""
KNOBS = {
    "BLOCK_SIZE": (128, 256, 512, 1024, 2048, 4096, 8192),
    "ROWS": (1, 2, 4, 8, 16, 32),
    "STAGES": (1, 2, 3, 4, 5, 6, 7),
}


def _valley(generator: random.Random) -> dict[Point, float]:
    middle = [generator.uniform(0, n - 1) for n in SIZES]
    weights = [generator.uniform(0.03, 0.25) for _ in SIZES]
    return {
        p: 40 * math.exp(sum(w * (i - m) ** 2 for w, i, m in zip(weights, p, middle, strict=True)))
        for p in product(*map(range, SIZES))
    }


@pytest.mark.parametrize("seed", range(4))
def test_a_quarter_of_the_points_comes_within_2_percent(seed: int) -> None:
    times = _valley(random.Random(seed))
    search = GridSearch(SIZES, (0, 0, 0, 0), seed)
    most = len(times) // 4
    while search.tried < most and (points := search.next_points(most - search.tried)):
        search.times |= {p: times[p] for p in points}
    assert search.tried <= most
    assert min(search.times.values()) <= 1.02 * min(times.values())


def test_a_point_beyond_a_refused_one_is_not_tried() -> None:
    search = GridSearch(SIZES, (0, 0, 0, 0))
    search.times[4, 1, 1, 3] = 10.0
    search.refused.add((5, 1, 1, 3))
    for _ in range(40):
        for point in search.next_points(20):
            assert not all(a >= b for a, b in zip(point, (5, 1, 1, 3), strict=True))
            search.failed.add(point)


def test_the_same_seed_gives_the_same_points() -> None:
    first, second = (GridSearch(SIZES, (0, 0, 0, 0), 3).next_points(12) for _ in range(2))
    assert first == second
    assert first[0] == (0, 0, 0, 0)


def _us(settings: dict[str, Any]) -> float | CaseStatus:
    if settings["ROWS"] == 32:
        return CaseStatus.COMPILE_ERROR
    off = abs(math.log2(settings["BLOCK_SIZE"] / 2048)) + abs(settings["STAGES"] - 3)
    return 20.0 * 1.1 ** (off + settings["ROWS"])


def test_sweep_searches_a_grid_that_is_too_large(lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v1", SOURCE)
    with pytest.raises(BadValue, match="294 configurations, at most 256.*--search"):
        lab.sweep("softmax", "v1", KNOBS)
    engine.sweep_us = _us
    sweep = lab.sweep("softmax", "v1", KNOBS, search=True, seed=5)
    assert sweep.best is not None
    assert sweep.best.settings == {"BLOCK_SIZE": 2048, "ROWS": 1, "STAGES": 3}
    assert sweep.best.label in sweep.raced
    assert len(sweep.configurations) <= sweep.space // 4 == 73
    *_, race, plan = engine.jobs
    assert len(race.points) == len(sweep.raced) == 4
    assert (plan.kind, plan.plan, plan.dtypes) == ("validate", "full", None)
    assert "BLOCK_SIZE = 2048" in plan.version.source
    assert sweep.best_cases == 9


def test_a_search_without_a_gpu_is_refused(lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v1", SOURCE)
    engine.device_kind = "interpreter"
    with pytest.raises(IllegalStep, match="--search follows the times"):
        lab.sweep("softmax", "v1", KNOBS, search=True)
