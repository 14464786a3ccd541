"""Tests on a GPU of launches that are too large: limits at extents, named in the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import Badge, BadgeCode, CaseStatus

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
KERNELS = Path(__file__).parents[1] / "faults" / "kernels"
HEADS = "over 65,535 heads"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        yield lab


@pytest.mark.parametrize(
    ("op", "version", "name", "axis"),
    [
        ("attention", "v1", "attention_flash", "second"),
        ("attention", "v2", "attention_three_kernels", "third"),
        ("mha", "v1", "mha_flash", "second"),
    ],
)
def test_attention_passes_with_a_limit_of_heads(
    lab: Lab, op: str, version: str, name: str, axis: str
) -> None:
    source = (KERNELS / "right" / f"{name}.py").read_text()
    lab.write(op, version, source, compile=False)
    verdict = lab.validate(op, version, plan="full")
    assert verdict.passed, [(c.case.label, c.reason) for c in verdict.failed_cases]
    reasons = {limit.item: limit.reason for limit in verdict.stated_limits}
    limit = f"the {axis} axis of the grid has 65,792 programs, CUDA allows 65,535"
    assert reasons == {HEADS: limit}
    assert Badge.of(BadgeCode.STATED_LIMITS, extents=(HEADS,)) in verdict.badges
    assert verdict.is_conclusive


def test_grid_too_long_elsewhere_is_an_error(lab: Lab) -> None:
    source = (KERNELS / "right" / "attention_flash.py").read_text()
    lab.write("attention", "v3", source, compile=False)
    verdict = lab.validate("attention", "v3", shapes=((257, 256, 1, 16),), dtypes=("float32",))
    assert not verdict.passed
    assert {c.status for c in verdict.failed_cases} == {CaseStatus.RUNTIME_ERROR}
