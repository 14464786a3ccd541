"""The range of an input's elements that makes a version wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.kit import CPU, KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.value_ranges import find_range, find_width
from triton_magics.harness.load import load_version
from triton_magics.model import Case
from triton_magics.rendering.views.causes import cause_text

pytestmark = pytest.mark.in_turn

CASE = Case(shape=(7, 130), dtype="float32", seed=1)
RIGHT = "tl.store(out_ptr + offsets, x * y, mask=mask)"
MUL = f'''"""A product.

op: vector_mul
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    {RIGHT}


def triton_vector_mul(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
'''


def subject_of(path: Path) -> Subject:
    job = job_for(path)
    op = operators.load(job.op.name)
    return Subject(op, load_version(job.version), job, CPU, job.version.body)


@pytest.mark.parametrize(
    ("product", "text", "limit"),
    [
        ("tl.where(tl.abs(y) < 0.1, x * 0.1, x * y)", "no element of y is under {} in size", 0.1),
        ("x * tl.minimum(y, 1.5)", "no element of y is over {} in size", 1.5),
        ("tl.where(x < 0, x * y * y, x * y)", "no element of x is negative", None),
        ("tl.where(x > 0, x * y * y, x * y)", "no element of x is positive", None),
        ("tl.where(offsets == 5, 0.0, x * y)", None, None),
        ("x * y * 1.01", None, None),
    ],
)
def test_a_range_is_named_where_it_alone_is_wrong(
    tmp_path: Path, product: str, text: str | None, limit: float | None
) -> None:
    (path := tmp_path / "kernel.py").write_text(MUL.replace("x * y, mask", f"{product}, mask"))
    assert run_cases(path, CASE)[0].status.failed
    cause = find_range(subject_of(path), CASE)
    if text is None:
        assert cause is None
        return
    assert cause is not None
    match = re.search(text.format(r"([\d.]+)"), cause_text(cause))
    assert match, cause_text(cause)
    if limit:
        assert 0.9 * limit <= float(match[1]) <= 1.1 * limit


def test_a_right_version_has_no_range() -> None:
    assert find_range(subject_of(KERNELS / "right" / "mul_flat.py"), CASE) is None


def test_the_width_of_an_index_is_named() -> None:
    case = Case(shape=(2, 50257), dtype="float32", seed=1)
    path = KERNELS.parent / "unseen_kernels" / "eighteenth" / "cross_entropy_narrow_target.py"
    cause = find_width(subject_of(path), case)
    assert cause is not None
    text = "right where no element of target is over 32,767, wrong with such"
    assert cause_text(cause) == f"likely: an integer has too few bits: {text}"
    assert find_width(subject_of(KERNELS / "right" / "cross_entropy_rows.py"), case) is None


def test_targets_of_a_last_block_need_no_more_bits() -> None:
    """Targets of 960 and more are lost, which are over 255; those of 256 to 287 are not."""
    path = KERNELS / "classes" / "combinations" / "linear_loss_target_in_the_tail.py"
    case = Case(shape=(7, 1000, 13), dtype="float32", seed=3)
    assert run_cases(path, case)[0].status.failed
    assert find_width(subject_of(path), case) is None
