"""Right: blocks are taken from both ends of a row in turn, and their means and squares joined by their counts: a trend along the row is counted exactly.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * m
    blocks = tl.cdiv(m, BLOCK)
    count = 0.0
    mean = 0.0
    squares = 0.0
    for step in range(0, blocks):
        # 0, last, 1, last but one, ...: what is read last here is in the cache below.
        block = tl.where(step % 2 == 0, step // 2, blocks - 1 - step // 2)
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m, other=0.0).to(tl.float32)
        n = tl.minimum(m - block * BLOCK, BLOCK).to(tl.float32)
        own_mean = tl.sum(x, axis=0) / n
        distance = tl.where(cols < m, x - own_mean, 0.0)
        delta = own_mean - mean
        share = n / (count + n)
        squares += tl.sum(distance * distance, axis=0) + delta * count * share * delta
        mean += delta * share
        count += n
    scale = 1.0 / tl.sqrt(squares / m + eps)
    for step in range(0, blocks):
        back = blocks - 1 - step
        block = tl.where(back % 2 == 0, back // 2, blocks - 1 - back // 2)
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + cols, mask=cols < m).to(tl.float32)
        w = tl.load(w_ptr + cols, mask=cols < m).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=cols < m).to(tl.float32)
        tl.store(out_ptr + row + cols, (x - mean) * scale * w + b, mask=cols < m)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    m = x.shape[-1]
    kernel[(x.numel() // m,)](x, weight, bias, out, m, eps, BLOCK=min(256, triton.next_power_of_2(m)))
    return out
