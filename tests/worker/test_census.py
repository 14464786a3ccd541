"""Which kernels a call runs, and whose."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.worker.harness import CPU, KERNELS, version_of
from tests.worker.sessions import (
    provider,
    right,
    session,
)
from triton_magics import ops
from triton_magics.model import Status
from triton_magics.worker import bench
from triton_magics.worker.census import BLIND, CALLS, Ran, census
from triton_magics.worker.load import load_version
from triton_magics.worker.rounds import all_sizes


def test_the_census_counts_kernels_by_stream_and_tells_tritons_share() -> None:
    def profile(act: Callable[[], object]) -> list[Ran]:
        act()
        return [Ran("sum_kernel", 7, 3.0), Ran("at::native::fill", 13, 1.0)] * CALLS

    op = ops.load("sum")
    loaded = load_version(version_of(KERNELS / "sum_right.py", "sum"))
    x = op.make_inputs((4, 8), torch.float32, CPU, torch.Generator())
    made = census("v1_a", "small", lambda: loaded.call(*x), profile=profile)
    assert [(k.name, k.stream, k.count, k.us, k.triton) for k in made.kernels] == [
        ("sum_kernel", 7, 1.0, 3.0, True), ("at::native::fill", 13, 1.0, 1.0, False),
    ]  # fmt: skip
    assert made.streams == (7, 13)
    assert made.triton_share == 0.75


def test_where_cupti_refuses_the_census_says_so_and_the_timings_stand() -> None:
    def refused(act: Callable[[], object]) -> list[Ran]:
        raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED\nat line 7")

    one = session(provider(right))
    told = bench.censuses(one, profile=refused)
    assert [c.provider for c in told] == ["torch", "v1_a"]
    assert {c.note for c in told} == {
        "CUPTI refused: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    }
    assert {c.note for c in bench.censuses(one, profile=lambda act: [])} == {BLIND}
    assert all_sizes(one)["status"] is Status.PASSED


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt])
def test_the_census_of_one_who_raises_is_missing_and_the_others_stands(
    raised: type[BaseException],
) -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        raise raised("too many columns for me")

    def profile(act: Callable[[], object]) -> list[Ran]:
        act()
        return [Ran("k", 7, 3.0)]

    one = session(provider(breaks), provider(right, "v2_b"))
    first, second, third = bench.censuses(one, profile=profile)
    assert "too many columns" in str(second.note)
    assert first.kernels
    assert third.kernels
