"""Ops that the project does not ship, each with a right kernel, for faults of unseen formulas."""

from __future__ import annotations

_HEAD = """import torch
import triton
import triton.language as tl


@triton.jit
"""
_ROWS = """import torch


def make_inputs(shape, dtype, device, generator):
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return (x, torch.randn(shape, dtype=dtype, device=device, generator=generator))
"""

OPS: dict[str, tuple[str, str]] = {
    "rms_norm": (
        """import torch


def make_inputs(shape, dtype, device, generator):
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return (x, torch.rand(shape[-1:], dtype=dtype, device=device, generator=generator) + 0.5)


def reference(x, weight):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-3)
    return (wide * scale * weight).to(x.dtype)
""",
        _HEAD
        + """def kernel(x_ptr, w_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        acc += x * x
    scale = tl.rsqrt(tl.sum(acc, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, x * scale * w, mask=mask)


def triton_rms_norm(x, weight):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, weight.contiguous(), out, n_cols, 1e-3, BLOCK=256)
    return out.view(x.shape)
""",
    ),
    "swiglu": (
        _ROWS
        + """

def reference(x, y):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (torch.nn.functional.silu(wide) * y).to(x.dtype)
""",
        _HEAD
        + """def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x / (1.0 + tl.exp(-x)) * y, mask=mask)


def triton_swiglu(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), BLOCK=512)
    return out
""",
    ),
    "log_softmax": (
        """import torch


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x):
    return torch.log_softmax(x, -1)
""",
        _HEAD
        + """def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    total = tl.sum(tl.exp(x - top), axis=0)
    tl.store(out_ptr + row * n_cols + cols, x - top - tl.log(total), mask=mask)


def triton_log_softmax(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
""",
    ),
    "l2_normalize": (
        """import torch


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    norm = torch.sqrt((wide * wide).sum(-1, keepdim=True))
    return (wide / (norm + 1e-3)).to(x.dtype)
""",
        _HEAD
        + """def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(x * x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, x / (norm + 1e-3), mask=mask)


def triton_l2_normalize(x):
    rows = x.contiguous().view(-1, x.shape[-1])
    out = torch.empty_like(rows)
    n_rows, n_cols = rows.shape
    kernel[(n_rows,)](rows, out, n_cols, BLOCK=triton.next_power_of_2(n_cols))
    return out.view(x.shape)
""",
    ),
    "bias_tanh": (
        """import torch


def make_inputs(shape, dtype, device, generator):
    x = torch.randn(shape, dtype=dtype, device=device, generator=generator)
    return (x, torch.randn(shape[-1:], dtype=dtype, device=device, generator=generator))


def reference(x, bias):
    return 30.0 * torch.tanh((x + bias) / 30.0)
""",
        _HEAD
        + """def kernel(x_ptr, bias_ptr, out_ptr, n, n_cols, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + offsets % n_cols, mask=mask).to(tl.float32)
    scaled = (x + bias) / 30.0
    power = tl.exp(-2.0 * tl.abs(scaled))
    tanh = (1.0 - power) / (1.0 + power)
    tl.store(out_ptr + offsets, 30.0 * tl.where(scaled < 0, -tanh, tanh), mask=mask)


def triton_bias_tanh(x, bias):
    x, bias = x.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n, n_cols = x.numel(), x.shape[-1]
    kernel[(triton.cdiv(n, 512),)](x, bias, out, n, n_cols, BLOCK=512)
    return out
""",
    ),
}
"""By name: the op's source and the kernel's."""
