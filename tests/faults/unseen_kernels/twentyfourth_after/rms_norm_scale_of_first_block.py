"""float16 squares are taken in float16, of values over the largest of the row's first 256: a later one that is 256 times as large overflows.

op: rms_norm
status: failed
cause: values
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, stride_w, eps, HALF: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * m
    out_ptr += row * m
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    scale = 1.0
    if HALF:
        # Two float16 products an instruction: bring the row near 1, so that no square is lost.
        cols = tl.arange(0, BLOCK)
        head = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        largest = tl.maximum(tl.max(tl.abs(head), axis=0), 1.0 / 16384)
        scale = (1.0 / largest).to(tl.float16)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0)
        if HALF:
            near = x * scale
            total += (near * near).to(tl.float32)
        else:
            x = x.to(tl.float32)
            total += x * x
    squares = tl.sum(total, axis=0) / m
    if HALF:
        squares = squares / (scale.to(tl.float32) * scale.to(tl.float32))
    factor = 1.0 / tl.sqrt(squares + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        w = tl.load(weight_ptr + cols * stride_w, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, x * factor * w, mask=cols < m)


def triton_rms_norm(x, weight, eps=1e-5):
    x = x.contiguous()
    m = x.shape[-1]
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    kernel[(x.numel() // m,)](
        x, weight, out, m, weight.stride(0), eps, HALF=x.dtype == torch.float16, BLOCK=256
    )
    return out
