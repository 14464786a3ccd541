"""A right kernel may rely on the structure that an op declares of its inputs."""

from __future__ import annotations

import pytest
import torch

from tests.harness import own_kit
from tests.harness.kit import CPU
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.load import UserFault, load_op
from triton_magics.model import Case

pytestmark = pytest.mark.in_turn

SYMMETRIC = """
import torch
SIZES = {"small": (16, 16), "large": (32, 32)}
SHAPES = ((7, 7), (13, 13))
EXTENTS = {}
def make_inputs(shape, dtype, device, generator):
    a = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    x = torch.randn(shape[:1], dtype=dtype, device=device, generator=generator)
    return a + a.T, x
def reference(a, x): return a @ x
"""
SORTED = """
import torch
SIZES = {"small": (64,), "large": (256,)}
SHAPES = ((7,), (33,))
EXTENTS = {}
def make_inputs(shape, dtype, device, generator):
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return (x.sort().values,)
def reference(x): return x.amax(-1, keepdim=True) - x
"""
LOWER_HALF = (
    own_kit.KERNEL_HEAD
    + """

@triton.jit
def kernel(a_ptr, x_ptr, y_ptr, n, ar, ac, xs, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    low, high = tl.minimum(row, cols), tl.maximum(row, cols)
    a = tl.load(a_ptr + high * ar + low * ac, mask=mask, other=0.0)
    x = tl.load(x_ptr + cols * xs, mask=mask, other=0.0)
    tl.store(y_ptr + row, tl.sum(a * x, axis=0))


def triton_own(a, x):
    n = len(x)
    y = torch.empty(n, dtype=x.dtype, device=x.device)
    kernel[(n,)](a, x, y, n, a.stride(0), a.stride(1), x.stride(0), BLOCK=triton.next_power_of_2(n))
    return y
"""
)
LAST_IS_LARGEST = (
    own_kit.KERNEL_HEAD
    + """

@triton.jit
def kernel(x_ptr, y_ptr, n, xs, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    largest = tl.load(x_ptr + (n - 1) * xs)
    x = tl.load(x_ptr + offsets * xs, mask=mask)
    tl.store(y_ptr + offsets, largest - x, mask=mask)


def triton_own(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), x.stride(0), BLOCK=64)
    return y
"""
)
CASES = {"symmetric": (SYMMETRIC, LOWER_HALF), "sorted": (SORTED, LAST_IS_LARGEST)}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("plan", ["quick", pytest.param("full", marks=pytest.mark.slow)])
def test_kernel_that_relies_on_a_declared_structure_passes(name: str, plan: str) -> None:
    op, kernel = CASES[name]
    verdict = own_kit.validate(op + "STRUCTURED = (0,)\n", kernel, plan=plan, budget_s=3.0)
    assert verdict.passed, verdict.failed_cases[0]


@pytest.mark.parametrize("extents", ["", "EXTENTS = {}\n"])
def test_a_full_plan_has_no_shape_that_the_op_does_not_take(extents: str) -> None:
    source = SYMMETRIC.replace("EXTENTS = {}\n", extents) + "STRUCTURED = (0,)\n"
    op = load_op(OpRef.own(own_kit.NAME, source))
    request = PlanJob(op=OpRef(name="softmax"), seed=1, device_kind="gpu", plan="full")
    for device in (DeviceFacts(), DeviceFacts(is_interpreted=True)):
        shapes = {case.shape for case in plan_cases(op, request, device).cases}
        assert all(rows == columns for rows, columns in shapes), shapes


def test_an_op_that_reads_what_it_draws_keeps_all_shapes() -> None:
    reads = SYMMETRIC.replace("return a + a.T, x", "return a * (1 if float(a[0, 0]) else 2), x[:1]")
    reads = reads.replace("return a @ x", "return a * x").replace("EXTENTS = {}\n", "")
    op = load_op(OpRef.own(own_kit.NAME, reads))
    request = PlanJob(op=OpRef(name="softmax"), seed=1, device_kind="gpu", plan="full")
    shapes = {case.shape for case in plan_cases(op, request, DeviceFacts()).cases}
    assert {(12, 384), (70_001, 3)} <= shapes


@pytest.mark.parametrize("name", CASES)
def test_kernel_that_relies_on_an_undeclared_structure_fails(name: str) -> None:
    op, kernel = CASES[name]
    assert not own_kit.validate(op, kernel, budget_s=3.0).passed


@pytest.mark.parametrize(
    "change", [{"special": "huge element"}, {"regime": "x10"}, {"layouts": (("a", "expanded"),)}]
)
def test_structured_input_keeps_its_values(change: dict[str, object]) -> None:
    op = load_op(OpRef.own(own_kit.NAME, SYMMETRIC + "STRUCTURED = (0,)\n"))
    a, _ = make_pristine(op, Case(shape=(7, 7), dtype="float32", seed=1, **change), CPU)
    assert torch.equal(a, a.T)


def test_position_that_is_no_number_is_refused() -> None:
    with pytest.raises(UserFault, match="STRUCTURED"):
        own_kit.describe(SYMMETRIC + "STRUCTURED = 'a'\n")
