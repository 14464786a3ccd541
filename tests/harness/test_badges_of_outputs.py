"""Versions that pass with a badge: for their dtypes, or for how their outputs lie in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, run_cases
from triton_magics.model import Badge, BadgeCode, Case, CaseStatus
from triton_magics.rendering.views.badges import badge_text

PARTIALS = Path(__file__).parents[1] / "faults/unseen_kernels/twentythird"
LONG = Case(shape=(3, 4097), dtype="float32", seed=1)


def test_sums_in_the_default_dtype_are_noted_and_not_refused() -> None:
    (result,) = run_cases(PARTIALS / "sum_default_dtype_partials.py", LONG)
    assert (result.status, result.needs_default_dtype) == (CaseStatus.PASSED, True)
    assert torch.get_default_dtype() == torch.float32
    badge = Badge(code=BadgeCode.DEFAULT_DTYPE)
    assert "wrong under another `torch.set_default_dtype`" in badge_text([badge])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_version_that_names_its_dtypes_has_no_badge(dtype: str) -> None:
    (result,) = run_cases(KERNELS / "sum_right.py", LONG.evolve(dtype=dtype))
    assert (result.status, result.needs_default_dtype) == (CaseStatus.PASSED, False)


def test_right_values_that_are_not_contiguous_are_noted() -> None:
    path = next(KERNELS.parent.rglob("softmax_pitched_output_right.py"))
    plain = Case(shape=(7, 13), dtype="float32", seed=1)
    pitched, right = (run_cases(p, plain)[0] for p in (path, KERNELS / "softmax_right.py"))
    assert (pitched.status, pitched.is_scattered) == (CaseStatus.PASSED, True)
    assert (right.status, right.is_scattered) == (CaseStatus.PASSED, False)
