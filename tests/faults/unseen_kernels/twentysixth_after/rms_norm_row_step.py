"""The step between rows is read from the last but one dimension, and the test that one step serves all rows passes over
dimensions of size 1: rows of hidden[:, -1:, :] are taken from the wrong place.

op: rms_norm
status: failed
cause: strides
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, row_step, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * row_step
    out_ptr += row * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    factor = tl.rsqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, x * factor * weight, mask=cols < m)


def step_of_rows(x):
    """Return the step from one row to the next, or None where the rows are not evenly spaced."""
    if x.dim() < 2:
        return 0
    if x.stride(-1) != 1:
        return None
    sizes, strides = x.shape[:-1], x.stride()[:-1]
    for outer in range(len(sizes) - 1):
        if sizes[outer + 1] == 1:  # its stride means nothing
            continue
        if strides[outer] != sizes[outer + 1] * strides[outer + 1]:
            return None
    return strides[-1]


def triton_rms_norm(x, weight, eps=1e-5):
    m = x.shape[-1]
    row_step = step_of_rows(x)
    if row_step is None or (x.dim() < 2 and x.stride(-1) != 1):
        x = x.contiguous()
        row_step = m
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        BLOCK = min(1024, triton.next_power_of_2(m))
        kernel[(x.numel() // m,)](x, weight.contiguous(), out, m, row_step, eps, BLOCK=BLOCK)
    return out
