"""132 programs make at most four passes over tiles of eight rows: rows from 4224 on are never written.

op: rms_norm
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, out_ptr, rows, cols, eps, PASSES: tl.constexpr, BM: tl.constexpr, BLOCK: tl.constexpr):
    for number in tl.static_range(PASSES):
        at = (number * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * BM + tl.arange(0, BM)
        squares = tl.zeros((BM, BLOCK), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            cs = start + tl.arange(0, BLOCK)
            mask = (at < rows)[:, None] & (cs < cols)[None, :]
            x = tl.load(x_ptr + at[:, None] * cols + cs[None, :], mask=mask, other=0.0).to(tl.float32)
            squares += x * x
        rstd = 1.0 / tl.sqrt(tl.sum(squares, axis=1) / cols + eps)
        for start in range(0, cols, BLOCK):
            cs = start + tl.arange(0, BLOCK)
            mask = (at < rows)[:, None] & (cs < cols)[None, :]
            x = tl.load(x_ptr + at[:, None] * cols + cs[None, :], mask=mask, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + cs, mask=cs < cols, other=0.0).to(tl.float32)
            tl.store(out_ptr + at[:, None] * cols + cs[None, :], x * rstd[:, None] * w[None, :], mask=mask)


def triton_rms_norm(x, weight, eps=1e-05):
    x, weight = x.contiguous(), weight.contiguous()
    out = torch.empty_like(x)
    cols = x.shape[-1]
    rows = x.numel() // cols
    tiles = triton.cdiv(rows, 8)
    programs = min(132, tiles)
    # One kernel for each number of passes, unrolled: 1, 2 or 4.
    passes = min(4, triton.next_power_of_2(triton.cdiv(tiles, programs)))
    kernel[(programs,)](
        x, weight, out, rows, cols, eps, PASSES=passes, BM=8, BLOCK=min(512, triton.next_power_of_2(cols)),
    )
    return out
