# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Tests of invalid time limits, seeds and target files, which are refused first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor
from tests.lab_harness import SOURCE, engine, lab  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import BadValue, UnknownVersion
from triton_magics.lab import Lab
from triton_magics.next_step import NextStep
from triton_magics.session.checks import MAX_SEED, MAX_TIMEOUT_S
from triton_magics.verbs._phrase import as_magic

GRID = {"BLOCK_SIZE": (256, 512)}
ASK: dict[str, Callable[..., object]] = {
    "run": lambda lab, **options: lab.run("softmax", "v1", **options),
    "validate": lambda lab, **options: lab.validate("softmax", "v1", **options),
    "bench": lambda lab, **options: lab.bench("softmax", "v1", **options),
    "sweep": lambda lab, **options: lab.sweep("softmax", "v1", GRID, **options),
}


@pytest.fixture
def right(lab: Lab) -> Lab:
    """A lab with a version that passed."""
    lab.write("softmax", "v1", f"BLOCK_SIZE = 256\n{SOURCE}")
    lab.validate("softmax", "v1")
    return lab


@pytest.mark.parametrize("verb", ASK)
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("timeout", 0.0, "timeout=0: write seconds, more than 0"),
        ("timeout", -3.0, "timeout=-3"),
        ("timeout", float("nan"), "timeout=nan"),
        ("timeout", float("inf"), "timeout=inf"),
        ("timeout", MAX_TIMEOUT_S + 1, "at most 86400"),
        ("seed", -1, "seed=-1: write a whole number from 0"),
        ("seed", MAX_SEED + 1, f"to {MAX_SEED}"),
    ],
)
def test_an_impossible_limit_is_refused_without_loss(
    right: Lab, engine: FakeExecutor, verb: str, option: str, value: float, words: str
) -> None:
    jobs, events = len(engine.jobs), list(right.session.workspace.events("softmax"))
    with pytest.raises(BadValue, match=words):
        ASK[verb](right, **{option: value})
    assert len(engine.jobs) == jobs
    assert list(right.session.workspace.events("softmax")) == events


@pytest.mark.parametrize("verb", ASK)
def test_the_outermost_limits_are_taken(right: Lab, engine: FakeExecutor, verb: str) -> None:
    for seed, timeout in ((0, 1e-3), (MAX_SEED, MAX_TIMEOUT_S)):
        ASK[verb](right, seed=seed, timeout=timeout)
        assert engine.jobs[-1].seed == seed


@pytest.mark.parametrize("name", ["x.svg", "x.pdf", "x"])
def test_a_plot_path_that_is_no_png_is_refused(right: Lab, tmp_path: Path, name: str) -> None:
    right.bench("softmax", "v1")
    with pytest.raises(BadValue, match=r"written as PNG; name a file that ends in \.png"):
        right.plot("softmax", to=tmp_path / name)
    assert not (tmp_path / name).exists()
    right.plot("softmax", to=tmp_path / "x.PNG")
    assert (tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")


def test_error_of_an_impossible_picture_names_the_next_step(
    right: Lab, engine: FakeExecutor
) -> None:
    right.bench("softmax", "v1", sizes=("small",))
    with pytest.raises(BadValue, match="times needs two sizes or more") as error:
        right.plot("softmax", "times")
    assert error.value.next_step == NextStep("bench", {"op": "softmax"})
    with pytest.raises(UnknownVersion, match="nothing to draw yet") as error:
        right.plot("softmax", "sweep")
    assert error.value.next_step is not None
    assert as_magic(error.value.next_step) == "%triton_sweep softmax v1 num_warps=4,8"
    engine.device_kind = "interpreter"
    right.sweep("softmax", "v1", GRID)
    with pytest.raises(UnknownVersion, match="swept, but nothing was compiled or timed"):
        right.plot("softmax", "sweep")
