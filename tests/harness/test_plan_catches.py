"""Wrong kernels whose fault needs a layout, a combination, an extent or special values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness import one_case, shape_classes, validate_job
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.load import load_version
from triton_magics.model import BESIDE, CONTIGUOUS, Case, CaseResult, CaseStatus

pytestmark = [
    pytest.mark.in_turn,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NaN is an input here
]
INTERPRETER = DeviceFacts(is_interpreted=True, refused={"bfloat16": "it computes it wrongly"})
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"

ADD = (
    HEAD
    + """def kernel(
    x_ptr, y_ptr, out_ptr, alpha, n, n_cols, x_row, x_col, y_row, y_col, BLOCK: tl.constexpr
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    row, col = offsets // n_cols, offsets % n_cols
    x = tl.load(x_ptr + row * x_row + col * x_col, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + row * y_row + col * y_col, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.dim() != 2:
        x, y = x.contiguous().view(-1, x.shape[-1]), y.contiguous().view(-1, x.shape[-1])
    kernel[(triton.cdiv(x.numel(), 4096),)](
        x, y, out, alpha, x.numel(), x.shape[-1], x.stride(0), x.stride(1), Y_STRIDES, BLOCK=4096
    )
    return out
"""
)
RELU = (
    HEAD
    + """def kernel(x_ptr, out_ptr, n_cols, x_row, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * ROW + cols, mask=cols < n_cols)
        tl.store(out_ptr + row * n_cols + cols, tl.where(x < 0, 0.0, x), mask=cols < n_cols)


def triton_relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.stride(-1) != 1 or x.dim() != 2:
        x = x.contiguous()
    rows = x.view(-1, x.shape[-1]) if x.is_contiguous() else x
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], rows.stride(0), BLOCK=4096)
    return out
"""
)
SOFTMAX = (
    HEAD
    + """def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    largest = -float("inf")
    total = 0.0
    for start in range(0, LIMIT, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=OTHER).to(tl.float32)
        top = tl.maximum(largest, tl.max(x, axis=0))
        new = SHIFT
        total = total * tl.where(largest == top, 1.0, tl.exp(largest - new))
        total += tl.sum(tl.where(cols < n_cols, tl.exp(x - new), 0.0), axis=0)
        largest = top
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x - largest) / total, mask=cols < n_cols)


def triton_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    kernel[(rows.shape[0],)](rows, out, rows.shape[1], BLOCK=1024)
    return out.view(x.shape)
"""
)
SUM = (
    HEAD
    + """def parts(x_ptr, parts_ptr, n_cols, n_parts, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    cols = part * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)CAST
    tl.store(parts_ptr + row * n_parts + part, tl.sum(x, axis=0))


@triton.jit
def join(parts_ptr, out_ptr, n_parts, MOST: tl.constexpr):
    row = tl.program_id(0)
    numbers = tl.arange(0, MOST)
    x = tl.load(parts_ptr + row * n_parts + numbers, mask=numbers < n_parts, other=0.0)
    tl.store(out_ptr + row, tl.sum(x.to(tl.float32), axis=0))


def triton_sum(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    n_rows, n_cols = rows.shape
    n_parts = triton.cdiv(n_cols, 1024)
    partial = torch.empty((n_rows, n_parts), dtype=PARTIAL, device=x.device)
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    parts[(n_rows, n_parts)](rows, partial, n_cols, n_parts, BLOCK=1024)
    join[(n_rows,)](partial, out, n_parts, MOST=MOST_PARTS)
    return out.view(x.shape[:-1])
"""
)
OWN = "y.stride(0), y.stride(1)"
SAFE = 'tl.where(top == -float("inf"), 0.0, top)'
SOFTMAX_RIGHT = {"LIMIT": "n_cols", "OTHER": '-float("inf")', "SHIFT": SAFE}
SUM_RIGHT = {"CAST": ".to(tl.float32)", "PARTIAL": "torch.float32", "MOST_PARTS": "1024"}
RIGHT = {
    "vector_add": (ADD, {"Y_STRIDES": OWN}),
    "relu": (RELU, {"ROW": "x_row"}),
    "softmax": (SOFTMAX, SOFTMAX_RIGHT),
    "sum": (SUM, SUM_RIGHT),
}
WRONG = {
    "y is read by the strides of x": ("vector_add", {"Y_STRIDES": "x.stride(0), x.stride(1)"}),
    "y is read as if it were contiguous": ("vector_add", {"Y_STRIDES": "y.shape[1], 1"}),
    "rows are as far apart as they are long": ("relu", {"ROW": "n_cols"}),
    "columns from 65,536 on are left out": ("softmax", {"LIMIT": "min(n_cols, 65536)"}),
    "a block of -inf gives NaN": ("softmax", {"SHIFT": "top"}),
    "lanes past the row are -1e4": ("softmax", {"OTHER": "-1e4"}),
    "lanes past the row are 0": ("softmax", {"OTHER": "0.0"}),
    "parts are added in half precision": ("sum", {"CAST": "", "PARTIAL": "x.dtype"}),
    "only 64 parts are joined": ("sum", {"MOST_PARTS": "64"}),
}


def write_kernel(folder: Path, op: str, changes: dict[str, str]) -> Path:
    source, values = RIGHT[op]
    for name, value in {**values, **changes}.items():
        source = source.replace(name, value)
    path = folder / f"{op}.py"
    path.write_text(f'"""A kernel.\n\nop: {op}\n"""\n{source}')
    return path


def first_failure(path: Path, seed: int, *, only: str = "") -> CaseResult | None:
    """Run the cases of the full plan beside the sizes; return the first that fails.

    `only`: an input; cases in which it is contiguous are left out.
    """
    job = job_for(path, seed=seed)
    op = operators.load(job.op.name)
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, job.version.body)
    for case in reversed(plan_cases(op, job, INTERPRETER).cases):  # wide and special ones are last
        if case.size or (not case.changes and case.shape[0] > 200):
            continue
        if only and case.layout_of(only) == CONTIGUOUS:
            continue
        with np.errstate(all="ignore"):
            result = one_case.run_case(subject, case)[0]
        if result.status is not CaseStatus.PASSED:
            return result
    return None


LONG = {  # 9 s and more each in the interpreter
    "columns from 65,536 on are left out",
    "a block of -inf gives NaN",
    "lanes past the row are 0",
    "parts are added in half precision",
    "only 64 parts are joined",
}


@pytest.mark.parametrize(
    "fault", [pytest.param(f, marks=[pytest.mark.slow] * (f in LONG)) for f in WRONG]
)
def test_a_full_plan_catches_the_fault(fault: str, tmp_path: Path) -> None:
    op, changes = WRONG[fault]
    assert first_failure(write_kernel(tmp_path, op, changes), seed=8) is not None


@pytest.mark.slow  # all cases of a plan each
@pytest.mark.parametrize("op", RIGHT)
def test_the_right_kernel_near_by_passes(op: str, tmp_path: Path) -> None:
    assert first_failure(write_kernel(tmp_path, op, {}), seed=7) is None


@pytest.mark.slow  # all layouts of attention
def test_keys_and_values_read_as_contiguous_are_caught(tmp_path: Path) -> None:
    text = (KERNELS / "right" / "attention_flash.py").read_text()
    path = tmp_path / "attention.py"
    path.write_text(text.replace("k.contiguous(), v.contiguous()", "k, v"))
    result = first_failure(path, seed=8, only="k")
    assert result is not None
    assert {"k", "v"} & dict(result.case.layouts).keys()


def fails_at(name: str, is_of_kind: Callable[[Case], bool]) -> bool:
    """Return whether a kernel of the classes fails one of the full plan's cases of a kind."""
    path = KERNELS / "classes" / f"{name}.py"
    job = job_for(path)
    op = operators.load(job.op.name)
    subject = validate_job.Subject(op, load_version(job.version), job, CPU, job.version.body)
    cases = [c for c in plan_cases(op, job, INTERPRETER).cases if is_of_kind(c)]
    with np.errstate(all="ignore"):
        results = (one_case.run_case(subject, case)[0] for case in cases)
        return any(r.status not in (CaseStatus.PASSED, CaseStatus.NOT_RUN) for r in results)


@pytest.mark.parametrize(
    ("name", "is_wrong"),
    [
        ("softmax_clamps_its_maximum", True),
        ("softmax_guarded_chunks", False),
        ("sum_compensated", True),
        ("mean_compensated", False),
        ("relu_by_the_sign_bit", True),
        ("relu_by_bits", False),
    ],
)
def test_one_nonfinite_value_in_a_row_shows(name: str, *, is_wrong: bool) -> None:
    fails = fails_at(f"special_values/{name}", lambda c: c.special == "nonfinite" and not c.extent)
    assert fails is is_wrong


def test_equal_layouts_show_a_kernel_for_packed_inputs() -> None:
    assert fails_at("layouts/swiglu_packed_pair", lambda c: c.has_plain_values and bool(c.layouts))


@pytest.mark.parametrize(
    ("name", "extent"),
    [
        ("attention_head_in_five_bits", "over 128 heads"),
        ("add_folds_its_grid", "over 2,048 rows"),
    ],
)
def test_an_extent_of_one_dimension_shows_a_limit(name: str, extent: str) -> None:
    assert fails_at(f"extents/{name}", lambda c: c.extent == extent and c.has_plain_values)


def test_whole_blocks_of_one_size_show_a_mask_of_the_other() -> None:
    keys = {s[-2] for s in shape_classes.whole_blocks(operators.load("mha"))}
    assert fails_at(
        "combinations/mha_even_by_the_other_block",
        lambda c: c.shape[-2] in keys and c.has_plain_values,
    )


@pytest.mark.parametrize(
    ("name", "is_wrong"),
    [
        ("many_calls/quantized_parts_of_an_earlier_k", True),
        pytest.param("combinations/quantized_split_k", False, marks=pytest.mark.slow),
    ],
)
def test_what_a_longer_call_left_shows(name: str, *, is_wrong: bool) -> None:
    assert fails_at(name, lambda c: c.shape_class == BESIDE) is is_wrong


@pytest.mark.parametrize(
    ("name", "is_wrong"),
    [("quantized_negation_wraps", True), ("combinations/quantized_split_k", False)],
)
def test_the_least_byte_shows(name: str, *, is_wrong: bool) -> None:
    path = name if "/" in name else f"special_values/{name}"
    assert fails_at(path, lambda c: c.special == "least and largest bytes") is is_wrong


@pytest.mark.parametrize(
    ("name", "is_wrong"), [("matmul_limbs_without_scale", True), ("matmul_scaled_limbs", False)]
)
def test_values_past_float16_show(name: str, *, is_wrong: bool) -> None:
    assert fails_at(f"combinations/{name}", lambda c: c.regime == "large") is is_wrong
