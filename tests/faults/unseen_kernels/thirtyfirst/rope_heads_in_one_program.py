"""Right: one program turns all heads of some positions, reads cos and sin once by their own strides, writes b first.

op: rope
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, batch, heads, seq, half,
    xb, xh, xs, xd, cs, cd, ss, sd,
    SEQ: tl.constexpr, BLOCK: tl.constexpr,
):
    # The last positions first, and of a tile the dimensions in a second axis of the grid.
    places = (tl.num_programs(0) - 1 - tl.program_id(0)) * SEQ + tl.arange(0, SEQ)
    dims = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (places < seq)[:, None] & (dims < half)[None, :]
    at, dims = places.to(tl.int64)[:, None], dims.to(tl.int64)[None, :]
    cos = tl.load(cos_ptr + at * cs + dims * cd, mask=mask, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + at * ss + dims * sd, mask=mask, other=0.0).to(tl.float32)
    n = batch * heads
    # Each program of the third axis takes every so many heads.
    for i in range(tl.program_id(2), n, tl.num_programs(2)):
        one, head = (i // heads).to(tl.int64), (i % heads).to(tl.int64)
        from_ptr = x_ptr + one * xb + head * xh + at * xs
        a = tl.load(from_ptr + dims * xd, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(from_ptr + (dims + half) * xd, mask=mask, other=0.0).to(tl.float32)
        to_ptr = out_ptr + ((one * heads + head) * seq + at) * (2 * half)
        tl.store(to_ptr + half + dims, a * sin + b * cos, mask=mask)
        tl.store(to_ptr + dims, a * cos - b * sin, mask=mask)


def triton_rope(x, cos, sin):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)  # contiguous, whatever x is
    if not out.numel():
        return out
    batch, heads, seq, d = x.shape
    half = d // 2
    BLOCK = min(triton.next_power_of_2(half), 64)
    SEQ = max(1, min(1024 // BLOCK, triton.next_power_of_2(seq)))
    grid = triton.cdiv(seq, SEQ), triton.cdiv(half, BLOCK), min(batch * heads, 12)
    kernel[grid](
        x, cos, sin, out, batch, heads, seq, half,
        *x.stride(), *cos.stride(), *sin.stride(), SEQ=SEQ, BLOCK=BLOCK,
    )
    return out
