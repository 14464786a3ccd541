"""Offsets of rows come from a cumulative sum of the lengths.

op: sum
status: passed
"""

import torch
import triton
import triton.language as tl



@triton.jit
def kernel(x_ptr, offsets_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start, end = tl.load(offsets_ptr + row), tl.load(offsets_ptr + row + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for base in range(start, end, BLOCK):
        at = base + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + at, mask=at < end, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def triton_sum(x):
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    lengths = torch.full((rows.shape[0],), rows.shape[1], device=x.device)
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
    out = torch.empty(rows.shape[0], dtype=x.dtype, device=x.device)
    kernel[(rows.shape[0],)](rows, offsets, out, BLOCK=512)
    return out.view(x.shape[:-1])
