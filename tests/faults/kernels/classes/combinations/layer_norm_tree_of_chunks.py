"""Moments about the first element are kept by lane, and joined by a reduction of three values.

op: layer_norm
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def join(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count > 0, count_b / tl.maximum(count, 1.0), 0.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, n_cols, eps, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        base = tl.full((), 0, tl.int64) + row
        base *= n_cols
        pivot = tl.load(x_ptr + base).to(tl.float32)
        mean = tl.zeros((BLOCK,), tl.float32)
        m2 = tl.zeros((BLOCK,), tl.float32)
        count = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_cols, BLOCK):
            mask = start + lanes < n_cols
            x = tl.load(x_ptr + base + start + lanes, mask=mask, other=0.0).to(tl.float32) - pivot
            more = count + mask.to(tl.float32)
            delta = tl.where(mask, x - mean, 0.0)
            mean += delta / tl.maximum(more, 1.0)
            m2 += tl.where(mask, delta * (x - mean), 0.0)
            count = more
        mean_all, m2_all, count_all = tl.reduce((mean, m2, count), 0, join)
        scale = tl.rsqrt(m2_all / count_all + eps)
        for start in range(0, n_cols, BLOCK):
            cols = start + lanes
            mask = cols < n_cols
            x = tl.load(x_ptr + base + cols, mask=mask).to(tl.float32)
            w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
            b = tl.load(b_ptr + cols, mask=mask).to(tl.float32)
            tl.store(out_ptr + base + cols, (x - pivot - mean_all) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    out = torch.empty_like(x)
    kernel[(min(n_rows, 128),)](x, weight, bias, out, n_rows, n_cols, eps, BLOCK=256)
    return out
