"""Long rows of a half type are narrowed inside their float32 workspace: the result has every second place of it, strides of 2.

op: softmax
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl

LONG = 4096  # longer rows do not fit in registers


@triton.jit
def short_kernel(x_ptr, out_ptr, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * m + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * m + cols, e / tl.sum(e, axis=0), mask=cols < m)


@triton.jit
def long_kernel(x_ptr, work_ptr, out_ptr, m, STEP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    work_ptr += row * m
    out_ptr += row * m * STEP
    largest = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, x)
    peak = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - peak)
        total += e
        tl.store(work_ptr + cols, e, mask=cols < m)  # so that exp is computed once
    scale = 1.0 / tl.sum(total, axis=0)
    tl.debug_barrier()
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        e = tl.load(work_ptr + cols, mask=cols < m, other=0.0)
        # The result takes the place of its own exponential: no second buffer.
        tl.store(out_ptr + cols * STEP, e * scale, mask=cols < m)


def triton_softmax(x):
    x = x.contiguous()
    m = x.shape[-1]
    if m <= LONG:
        out = torch.empty_like(x)
        if x.numel():
            short_kernel[(x.numel() // m,)](x, out, m, BLOCK=triton.next_power_of_2(m))
        return out
    work = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    step = 4 // x.element_size()
    out = work.view(x.dtype)[..., ::step]
    if x.numel():
        long_kernel[(x.numel() // m,)](x, work, out, m, STEP=step, BLOCK=1024)
    return out
