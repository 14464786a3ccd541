"""Benchmarks on a GPU of a backward pass alone, and of recorded inputs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from triton_magics.execution.local import gpu_detection
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, Status

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]

FUNCTION = """
import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)  # NaN stays


@triton.jit
def backward_kernel(g_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(g_ptr + offsets, mask=offsets < n)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, tl.where(x > 0, g, 0.0), mask=offsets < n)


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        forward_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad, dx = grad.contiguous(), torch.empty_like(x)
        backward_kernel[(triton.cdiv(x.numel(), 1024),)](grad, x, dx, x.numel(), BLOCK=1024)
        return dx
"""
RELU = (
    FUNCTION.partition("@triton.jit\ndef backward")[0]
    + """
def triton_relu(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    forward_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("workspace")) as lab:
        yield lab


def mean_us(benchmark: Benchmark, provider: str, size: str) -> float:
    """Return the mean time of a provider, which must have one."""
    timing = benchmark.timing(provider, size)
    assert timing is not None, benchmark.not_timed
    return timing.mean_us


def test_a_backward_pass_alone_takes_less_than_both_passes(lab: Lab) -> None:
    lab.write("relu_backward", "v1", FUNCTION, compile=False)
    assert lab.validate("relu_backward", "v1", plan="quick").passed
    whole = lab.bench("relu_backward", "v1", sizes=["large"])
    alone = lab.bench(
        "relu_backward", "v1", sizes=["large"], backward_only=True, against=["torch.compile"]
    )
    assert (whole.status, alone.status) == (Status.PASSED, Status.PASSED)
    for provider in ("v1", "torch"):
        assert mean_us(alone, provider, "large") < 0.8 * mean_us(whole, provider, "large")
    assert mean_us(alone, "torch.compile", "large") > 0
    assert alone.final_us("v1") is None


def test_recorded_inputs_are_timed_on_the_gpu(lab: Lab) -> None:
    lab.write("relu", "v1", RELU, compile=False)
    assert lab.validate("relu", "v1", plan="quick").passed
    torch.save({"x": torch.randn(2048, 2048)}, lab.path / "x.pt")
    benchmark = lab.bench("relu", "v1", inputs="x.pt")
    assert benchmark.status is Status.PASSED, benchmark.message
    assert mean_us(benchmark, "v1", "file") > 0
    assert benchmark.comparison("v1", "file") is not None
