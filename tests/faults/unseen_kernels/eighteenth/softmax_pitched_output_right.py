"""The output is a view of a buffer whose rows have at least 32 more columns, and is written from the last row to the first; each output has its own buffer.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, m, pitch, BLOCK: tl.constexpr):
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    x_row = x_ptr + row.to(tl.int64) * m
    out_row = out_ptr + row.to(tl.int64) * pitch
    # Backwards over the row: a running maximum and a running sum.
    largest = -float("inf")
    total = 0.0
    first = (m - 1) // BLOCK * BLOCK
    for back in range(0, m, BLOCK):
        cols = first - back + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, axis=0))
        safe = tl.where(new == -float("inf"), 0.0, new)
        total = total * tl.exp(largest - safe) + tl.sum(tl.exp(x - safe), axis=0)
        largest = new
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < m, other=-float("inf")).to(tl.float32)
        tl.store(out_row + cols, tl.exp(x - largest) / total, mask=cols < m)


def triton_softmax(x):
    shape = x.shape
    x = x.contiguous()
    m = shape[-1]
    pitch = triton.cdiv(m, 32) * 32 + 32
    buffer = torch.empty((*shape[:-1], pitch), dtype=x.dtype, device=x.device)
    out = buffer[..., :m]
    kernel[(x.numel() // m,)](x, out, m, pitch, BLOCK=min(512, triton.next_power_of_2(m)))
    return out
