"""Launches that are too large: at an extent a stated limit, elsewhere an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, run_cases, run_validation
from triton_magics.harness.correctness.shape_classes import extents
from triton_magics.languages.launch_limits import find_limit
from triton_magics.model import Badge, BadgeCode, Case, CaseStatus
from triton_magics.operators import load
from triton_magics.rendering import to_text, view

EXTENT = "over 2^18 columns"
LIMIT = "a block has 2,097,152 elements, Triton allows 1,048,576"
WIDE = Case(shape=extents(load("softmax"))[EXTENT], dtype="float32", seed=1)
BLOCK = "triton.next_power_of_2(n_cols)"


@pytest.fixture
def softmax_with(tmp_path: Path) -> Callable[[str], Path]:
    """Write a softmax with this size of a block."""

    def write(block: str) -> Path:
        path = tmp_path / "softmax.py"
        path.write_text((KERNELS / "softmax_right.py").read_text().replace(BLOCK, block))
        return path

    return write


def test_launch_too_large_is_a_limit_at_an_extent(softmax_with: Callable[[str], Path]) -> None:
    path = softmax_with(f"4 * {BLOCK}")
    at_extent, elsewhere = run_cases(path, WIDE.evolve(extent=EXTENT), WIDE)
    assert (at_extent.status, at_extent.reason) == (CaseStatus.REJECTED, LIMIT)
    assert elsewhere.status.failed
    assert "numel (2097152)" in str(elsewhere.reason)


@pytest.mark.slow
def test_wrong_output_at_an_extent_fails(softmax_with: Callable[[str], Path]) -> None:
    path = softmax_with(f"min({BLOCK}, 2**18)")
    (result,) = run_cases(path, WIDE.evolve(extent=EXTENT))
    assert result.status.failed


def test_other_error_at_an_extent_fails(softmax_with: Callable[[str], Path]) -> None:
    path = softmax_with("n_cols // (n_cols < 2**18)")
    (result,) = run_cases(path, WIDE.evolve(extent=EXTENT))
    assert result.status is CaseStatus.RUNTIME_ERROR


@pytest.mark.slow
def test_verdict_names_the_limit_with_its_extent(softmax_with: Callable[[str], Path]) -> None:
    path = softmax_with(f"4 * {BLOCK}")
    verdict = run_validation(path, plan="full", dtypes=("float32",), budget_s=60)
    assert verdict.passed, verdict.failed_cases
    assert Badge.of(BadgeCode.STATED_LIMITS, extents=(EXTENT,)) in verdict.badges
    assert [(limit.item, limit.reason) for limit in verdict.stated_limits] == [(EXTENT, LIMIT)]
    text = to_text(view(verdict))
    assert f"limit: {EXTENT}: {LIMIT}" in text
    assert f"limits: {EXTENT}" in text
    assert verdict.is_conclusive


@pytest.mark.parametrize(
    ("message", "grids", "limit"),
    [
        (
            "out of resource: shared memory, Required: 294912, Hardware limit: 232448. Reducing",
            [],
            "a program needs 294,912 bytes of shared memory, the GPU has 232,448",
        ),
        (
            "out of resource: threads, Required: 2048, Hardware limit: 1024. Reducing block sizes",
            [],
            "a program needs 2,048 threads, the GPU allows 1,024",
        ),
        (
            "Triton Error [CUDA]: invalid argument",
            [(70_000,), (1, 65_792)],
            "the second axis of the grid has 65,792 programs, CUDA allows 65,535",
        ),
        (
            "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: invalid argument",
            [(2, 3, 65_536)],
            "the third axis of the grid has 65,536 programs, CUDA allows 65,535",
        ),
        (
            "scale: grid.y is 65792; 1 to 65,535 are possible",
            [],
            "grid.y is 65,792, CUDA allows 65,535",
        ),
        (
            "scale: a block of 2,048 threads; at most 1,024 are possible",
            [],
            "a block has 2,048 threads, CUDA allows 1,024",
        ),
        (
            "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested",
            [(1,)],
            "a block needs more registers than a multiprocessor has",
        ),
        # Other errors.
        ("Triton Error [CUDA]: invalid argument", [(70_000, 65_535, 65_535)], None),
        ("Triton Error [CUDA]: invalid argument", [(1, 70_000), (5,)], None),
        ("Triton Error [CUDA]: invalid argument", [], None),
        ("Triton Error [CUDA]: an illegal memory access was encountered", [(1, 70_000)], None),
        ("scale: grid.x is 0; 1 to 2,147,483,647 are possible", [], None),
        ("CUDA out of memory. Tried to allocate 2.00 GiB", [], None),
    ],
)
def test_limit_is_recognized_by_its_message(
    message: str, grids: list[tuple[int, ...]], limit: str | None
) -> None:
    assert find_limit(message, grids) == limit
