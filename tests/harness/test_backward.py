"""Ops that compute the gradients of another op: right and wrong kernels, judged and timed."""

from __future__ import annotations

import pytest
import torch

from tests.harness.own_kit import KERNEL_HEAD, RANDN, bench, describe, validate
from triton_magics import knowledge, operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.harness.correctness.oracle import evaluate, upcast
from triton_magics.harness.load import load_op
from triton_magics.model import CaseStatus, Status

RELU = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(g_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(g_ptr + offsets, mask=mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(dx_ptr + offsets, tl.where(x > 0, g, 0.0), mask=mask)


def triton_relu_backward(grad_output, x):
    g, x = grad_output.contiguous(), x.contiguous()
    dx, n = torch.empty_like(x), x.numel()
    kernel[(triton.cdiv(n, 1024),)](g, x, dx, n, BLOCK=1024)
    return dx
"""
)
SOFTMAX = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(g_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + row * n + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    g = tl.load(g_ptr + row * n + offsets, mask=mask, other=0.0).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    y = e / tl.sum(e, 0)
    dx = y * (g - tl.sum(g * y, 0))
    tl.store(dx_ptr + row * n + offsets, dx, mask=mask)


def triton_softmax_backward(grad_output, x):
    g, x = grad_output.contiguous(), x.contiguous()
    dx, n = torch.empty_like(x), x.shape[-1]
    kernel[(x.numel() // n,)](g, x, dx, n, BLOCK=triton.next_power_of_2(n))
    return dx
"""
)
MUL = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(g_ptr, x_ptr, y_ptr, dx_ptr, dy_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(g_ptr + offsets, mask=mask)
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(dx_ptr + offsets, g * y, mask=mask)
    tl.store(dy_ptr + offsets, g * x, mask=mask)


def triton_vector_mul_backward(grad_output, x, y):
    g, x, y = grad_output.contiguous(), x.contiguous(), y.contiguous()
    dx, dy, n = torch.empty_like(x), torch.empty_like(x), x.numel()
    kernel[(triton.cdiv(n, 1024),)](g, x, y, dx, dy, n, BLOCK=1024)
    return dx, dy
"""
)
# name: source, and texts of it whose replacement gives a wrong gradient
KERNELS = {
    "relu": (RELU, [("x > 0", "x != 0"), ("g, 0.0", "1.0, 0.0"), ("g, 0.0", "x * g, 0.0")]),
    "softmax": (
        SOFTMAX,
        [
            (" - tl.sum(g * y, 0)", ""),
            ("y * (g -", "(g -"),
            ("tl.sum(g * y, 0)", "tl.sum(g, 0) / n"),  # right where all gradients are equal
        ],
    ),
    "vector_mul": (MUL, [("g * x,", "g * y,"), ("return dx, dy", "return dy, dx")]),
}


def ref(name: str) -> OpRef:
    return OpRef(name=f"{name}_backward", gradient_of=name)


@pytest.mark.parametrize("name", KERNELS)
def test_right_backward_kernel_passes(name: str) -> None:
    right = validate(ref(name), KERNELS[name][0], shapes=((7, 13), (3, 129)), dtypes=("float32",))
    assert right.status is Status.PASSED, [c.case.label for c in right.failed_cases]


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_right_backward_kernel_passes_a_plan(name: str) -> None:
    right = validate(ref(name), KERNELS[name][0])
    assert right.status is Status.PASSED, [c.case.label for c in right.failed_cases]
    assert right.uncalibrated_dtypes == ()


def test_backward_kernel_is_timed() -> None:
    timed = bench(ref("relu"), RELU, sizes=("64x64",))
    assert timed.passed, timed.message
    assert timed.timing("v1", "64x64")


@pytest.mark.parametrize("memory", ["torch.empty_like(x)", "g.clone()"])
def test_wrong_backward_kernel_is_not_called_cached(memory: str) -> None:
    wrong = RELU.replace("x > 0", "x != 0").replace("torch.empty_like(x)", memory)
    timed = bench(ref("relu"), wrong, sizes=("64x64",), seed=5)
    assert "wrong answer" in str(timed.message)


@pytest.mark.parametrize(
    ("name", "old", "new"), [(n, *change) for n, (_, wrong) in KERNELS.items() for change in wrong]
)
def test_wrong_gradient_fails(name: str, old: str, new: str) -> None:
    source = KERNELS[name][0]
    assert old in source
    wrong = source.replace(old, new)
    verdict = validate(ref(name), wrong, shapes=((3, 129),), dtypes=("float32",))
    assert verdict.status is Status.FAILED
    assert {c.status for c in verdict.failed_cases} == {CaseStatus.WRONG_VALUES}


def test_every_differentiable_op_that_ships_has_a_backward_op() -> None:
    for name in operators.names():
        facts = knowledge.facts(name)
        if facts.backward is None:
            with pytest.raises(operators.NoGradient, match="random output"):
                operators.BackwardOp(f"{name}_backward", operators.load(name))
            continue
        op = load_op(ref(name))
        assert isinstance(op, operators.BackwardOp)
        assert (op.output_gradients, op.gradients) == (
            facts.backward.output_gradients,
            facts.backward.returned,
        )


@pytest.mark.parametrize("name", [n for n in operators.names() if knowledge.facts(n).backward])
def test_backward_reference_agrees_with_finite_differences(name: str) -> None:
    op, forward = load_op(ref(name)), operators.load(name)
    shape = min((s for s in forward.shapes if min(s) > 1), key=lambda s: torch.Size(s).numel())
    device, draw = torch.device("cpu"), torch.Generator().manual_seed(3)
    weights, *inputs = upcast(op.make_inputs(shape, torch.float32, device, draw))
    outputs = evaluate(op, (weights, *inputs))[1]
    names = op.input_names(len(inputs) + 1)[1:]
    for name_of_input, gradient in zip(op.gradients, outputs, strict=True):
        i = names.index(name_of_input)
        direction = torch.randn(inputs[i].shape, dtype=torch.float64, generator=draw)
        step = 1e-6
        ends = [
            forward.reference(*inputs[:i], inputs[i] + s * direction, *inputs[i + 1 :])
            for s in (step, -step)
        ]
        change = ((ends[0] - ends[1]) / (2 * step) * weights).sum()
        assert float((gradient * direction).sum()) == pytest.approx(float(change), rel=1e-5)


def test_op_of_the_user_gets_its_backward_op() -> None:
    source = RANDN + "def reference(x): return torch.sin(x), x * x\n"
    backward = describe(source).backward
    assert backward is not None
    assert (backward.output_gradients, backward.returned) == (("grad_0", "grad_1"), ("x",))
    op = load_op(OpRef.own("own_backward", source, gradient_of="own"))
    draw = torch.Generator().manual_seed(1)
    a, b, x = op.make_inputs((3, 4), torch.float64, torch.device("cpu"), draw)
    torch.testing.assert_close(op.reference(a, b, x), a * x.cos() + 2 * b * x)
    assert len(a.unique()) == 12


@pytest.mark.parametrize(
    "body",
    [
        "MUTATES = (0,)\ndef reference(x): x.add_(1)",
        "def reference(x): return x.argmax(-1)",
        "def reference(x): return x.detach() * 2",
    ],
)
def test_op_without_gradient_has_no_backward_op(body: str) -> None:
    assert describe(RANDN + body + "\n").backward is None
