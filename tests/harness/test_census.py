"""Census: the kernels of a call, and Triton's share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, version_of
from tests.harness.sessions import (
    provider,
    right,
    session,
)
from triton_magics import operators
from triton_magics.harness.load import load_version
from triton_magics.harness.timing import bench_job
from triton_magics.harness.timing.kernel_census import (
    CALLS,
    NO_KERNELS_SEEN,
    KernelRun,
    take_census,
)
from triton_magics.harness.timing.rounds import time_all_sizes
from triton_magics.model import Status


def test_the_census_counts_kernels_by_stream() -> None:
    def profile(act: Callable[[], object]) -> list[KernelRun]:
        act()
        return [KernelRun("sum_kernel", 7, 3.0), KernelRun("at::native::fill", 13, 1.0)] * CALLS

    op = operators.load("sum")
    loaded = load_version(version_of(KERNELS / "sum_right.py", "sum"))
    x = op.make_inputs((4, 8), torch.float32, CPU, torch.Generator())
    census = take_census(
        "v1_a", "small", lambda: loaded.call(*x), runtime=loaded.runtime, profile=profile
    )
    assert [(k.name, k.stream, k.count, k.us, k.triton) for k in census.kernels] == [
        ("sum_kernel", 7, 1.0, 3.0, True), ("at::native::fill", 13, 1.0, 1.0, False),
    ]  # fmt: skip
    assert census.streams == (7, 13)
    assert census.triton_share == 0.75


def test_a_refused_cupti_leaves_the_timings() -> None:
    def refuse(act: Callable[[], object]) -> list[KernelRun]:
        raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED\nat line 7")

    one = session(provider(right))
    censuses = bench_job.take_censuses(one, profile=refuse)
    assert [c.provider for c in censuses] == ["torch", "v1_a"]
    assert {c.note for c in censuses} == {
        "CUPTI refused: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    }
    assert {c.note for c in bench_job.take_censuses(one, profile=lambda act: [])} == {
        NO_KERNELS_SEEN
    }
    assert time_all_sizes(one)["status"] is Status.PASSED


@pytest.mark.parametrize("raised", [ValueError, SystemExit, KeyboardInterrupt])
def test_only_the_census_of_a_raising_version_is_missing(
    raised: type[BaseException],
) -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        raise raised("too many columns for me")

    def profile(act: Callable[[], object]) -> list[KernelRun]:
        act()
        return [KernelRun("k", 7, 3.0)]

    one = session(provider(breaks), provider(right, "v2_b"))
    first, second, third = bench_job.take_censuses(one, profile=profile)
    assert "too many columns" in str(second.note)
    assert first.kernels
    assert third.kernels
