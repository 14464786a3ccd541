"""Ops that compute the gradients of another op: right and wrong kernels, judged and timed."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch

from tests.harness.own_kit import KERNEL_HEAD, RANDN, bench, describe, validate, version
from triton_magics import knowledge, operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.correctness.oracle import evaluate, upcast
from triton_magics.harness.load import UserFault, load_op
from triton_magics.harness.timing import interpreter_timing
from triton_magics.harness.timing.baselines import make_providers
from triton_magics.harness.timing.input_pool import InputPool, timing_case
from triton_magics.harness.version_call import BackwardPass
from triton_magics.model import Benchmark, CaseStatus, NotTimedCode, Status

pytestmark = pytest.mark.in_turn

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


# By the clock of the test the forward pass takes 100 us, the backward pass 1 us.
FUNCTION = """
import os
import torch
def _advance(ticks):
    os.environ["TICKS_US"] = str(int(os.environ["TICKS_US"]) + ticks)
class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        _advance(100)
        ctx.save_for_backward(x)
        return x.relu()
    @staticmethod
    def backward(ctx, grad):
        _advance(1)
        (x,) = ctx.saved_tensors
        return grad * (x > 0)
"""


def bench_function(source: str, **changes: object) -> Benchmark:
    own = version(source, "relu_backward", op=ref("relu"), language="torch")
    return bench(ref("relu"), RELU, versions=(own,), sizes=("64x64",), runs=3, **changes)


def test_backward_pass_is_timed_without_the_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKS_US", "0")
    monkeypatch.setattr(interpreter_timing, "_clock_s", lambda: 1e-6 * int(os.environ["TICKS_US"]))
    whole, alone = bench_function(FUNCTION), bench_function(FUNCTION, backward_only=True)
    assert whole.timing("v1", "64x64").samples_us == pytest.approx((101, 101, 101))
    assert alone.timing("v1", "64x64").samples_us == pytest.approx((1, 1, 1))
    assert (whole.backward_only, alone.backward_only) == (False, True)
    wrong = bench_function(FUNCTION.replace("x > 0", "x != 0"), backward_only=True)
    assert wrong.not_timed[0].code is NotTimedCode.WRONG_OUTPUT


def test_forward_pass_reads_the_contents_of_its_own_call() -> None:
    op = load_op(ref("relu"))
    passes: list[str] = []

    def prepare(gradient: torch.Tensor, x: torch.Tensor) -> Callable[[], torch.Tensor]:
        passes.append("forward")
        assert x.any()

        def run_backward() -> torch.Tensor:
            passes.append("backward")
            return gradient * (x > 0)

        return run_backward

    pool = InputPool(op, timing_case(op, "64x64", "float32", 1), torch.device("cpu"), n=4)
    calls = pool.make_calls(BackwardPass(prepare), 3)
    assert passes == []
    values = []
    for call in calls:
        call.before_gate()
        call.fill_inputs()
        assert passes[-1] == "forward"
        values.append(call.copy_output(call.function()))
    assert passes == ["forward", "backward"] * 3
    assert pool.check_outputs(values, calls) is None


def test_torch_is_timed_by_its_own_backward_pass() -> None:
    op = load_op(ref("relu"))
    job = BenchJob(
        op=ref("relu"), versions=(), sizes=("64x64",), runs=1, dtype="float32", seed=1,
        budget_s=1.0, backward_only=True,
    )  # fmt: skip
    (torch_itself,) = make_providers(job, op, ())
    gradient, x = torch.ones(2, 2), torch.tensor([[1.0, -1.0], [2.0, 0.0]])
    backward = torch_itself.call.prepare(gradient, x)
    x.zero_()  # the forward pass has saved what it needs
    assert torch.equal(backward(), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))


def test_a_baseline_is_a_function_that_autograd_differentiates() -> None:
    job = BenchJob(
        op=ref("relu"), versions=(), sizes=("64x64",), runs=1, dtype="float32", seed=1,
        budget_s=1.0, backward_only=True, against=("torch.nn.functional:relu6",),
    )  # fmt: skip
    _, baseline, _ = make_providers(job, load_op(ref("relu")), ())
    backward = baseline.call.prepare(torch.ones(3), torch.tensor([-1.0, 2.0, 7.0]))
    assert torch.equal(backward(), torch.tensor([0.0, 1.0, 0.0]))  # not relu's: 0, 1, 1


@pytest.mark.parametrize(
    ("op", "changes", "message"),
    [
        (OpRef(name="relu"), {}, "relu has no backward pass of its own; time relu_backward"),
        (ref("relu"), {"timer": "graph"}, "time it without --timer graph"),
        (ref("relu"), {"against": ("math:no_function",)}, "--against math:no_function"),
    ],
)
def test_backward_pass_that_can_not_be_timed_alone(
    op: OpRef, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserFault, match=message):
        bench(op, RELU, versions=(), backward_only=True, **changes)


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


@pytest.mark.parametrize(
    ("name", "unused"),
    [
        ("sum", {"x"}),
        ("mean", {"x"}),
        ("vector_add", {"x", "y"}),
        ("softmax", set()),
        ("relu", set()),
        ("matmul", set()),
        ("layer_norm", {"bias"}),
        ("vector_mul", set()),
        ("rope", set()),
    ],
)
def test_traffic_leaves_out_inputs_that_no_gradient_needs(name: str, unused: set[str]) -> None:
    op = load_op(ref(name))
    shape = {"matmul": (32, 16, 8), "rope": (2, 2, 8, 16)}.get(name, (32, 16))
    draw = torch.Generator().manual_seed(1)
    inputs = op.make_inputs(shape, torch.float32, torch.device("cpu"), draw)
    names = op.input_names(len(inputs))
    assert {names[i] for i in op.unused} == unused
    outputs = evaluate(op, inputs)[0]
    every = [x for x in (*inputs, *outputs) if isinstance(x, torch.Tensor)]
    left_out = sum(inputs[i].nbytes for i in op.unused)
    assert op.bytes(*inputs, output=outputs) == sum(x.nbytes for x in every) - left_out


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
