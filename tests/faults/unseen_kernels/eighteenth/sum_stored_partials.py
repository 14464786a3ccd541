"""The buffer of partial sums is stored by rows and width, a power of two, and added over its whole width: after a longer row of the same width a shorter one adds the old sums.

op: sum
status: failed
cause: leftovers
"""

import torch
import triton
import triton.language as tl


_buffers = {}


@triton.jit
def partial(x_ptr, parts_ptr, m, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row.to(tl.int64) * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(parts_ptr + row * width + tl.program_id(1), tl.sum(x, axis=0))


@triton.jit
def finish(parts_ptr, out_ptr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    parts = tl.load(parts_ptr + row * WIDTH + tl.arange(0, WIDTH))
    tl.store(out_ptr + row, tl.sum(parts, axis=0))


def buffer(rows, width, device):
    """Return [rows, width] of float32; zeros beyond the parts that are written."""
    key = (rows, width, device)
    if key not in _buffers:
        _buffers[key] = torch.zeros((rows, width), dtype=torch.float32, device=device)
    return _buffers[key]


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    rows = x.numel() // m
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    count = triton.cdiv(m, 512)
    width = triton.next_power_of_2(count)
    parts = buffer(rows, width, x.device)
    partial[(rows, count)](x, parts, m, width, BLOCK=512)
    finish[(rows,)](parts, out, WIDTH=width)
    return out
