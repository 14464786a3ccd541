"""Rows are cut into pieces of 1024, and the second kernel reads one block of 64 partial sums: what comes after 65536 elements is lost.

op: sum
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def pieces_kernel(x_ptr, part_ptr, m, pieces, PIECE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    piece = tl.program_id(1)
    at = piece * PIECE + tl.arange(0, PIECE)
    x = tl.load(x_ptr + row * m + at, mask=at < m, other=0.0).to(tl.float32)
    tl.store(part_ptr + row * pieces + piece, tl.sum(x, axis=0))


@triton.jit
def join_kernel(part_ptr, out_ptr, pieces, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + row, tl.sum(tl.load(part_ptr + row * pieces + at, mask=at < pieces, other=0.0), axis=0))


def triton_sum(x):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.zeros(x.shape[:-1], dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    pieces = triton.cdiv(m, 1024)
    part = torch.empty((out.numel(), pieces), dtype=torch.float32, device=x.device)
    pieces_kernel[(out.numel(), pieces)](x, part, m, pieces, PIECE=1024)
    join_kernel[(out.numel(),)](part, out, pieces, BLOCK=64)
    return out
