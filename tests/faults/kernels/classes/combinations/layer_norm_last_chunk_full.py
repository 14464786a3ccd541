"""Where a row has several chunks, the last one counts as a full one.

op: layer_norm
status: failed
cause: wrong_formula
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def join(mean, m2, count, other_mean, other_m2, other_count):
    delta = other_mean - mean
    total = count + other_count
    mean += delta * other_count / total
    m2 += other_m2 + delta * delta * count * other_count / total
    return mean, m2, total


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_cols, eps, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + base + cols, mask=mask, other=0.0).to(tl.float32)
    count = tl.minimum(n_cols, BLOCK).to(tl.float32)
    mean = tl.sum(x, axis=0) / count
    d = tl.where(mask, x - mean, 0.0)
    m2 = tl.sum(d * d, axis=0)
    for start in range(BLOCK, n_cols, BLOCK):
        here = start + cols
        mask = here < n_cols
        x = tl.load(x_ptr + base + here, mask=mask, other=0.0).to(tl.float32)
        n_here = tl.minimum(n_cols - start, BLOCK).to(tl.float32)
        mean_here = tl.sum(x, axis=0) / n_here
        d = tl.where(mask, x - mean_here, 0.0)
        mean, m2, count = join(mean, m2, count, mean_here, tl.sum(d * d, axis=0), BLOCK * 1.0)
    scale = tl.rsqrt(m2 / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        here = start + cols
        mask = here < n_cols
        x = tl.load(x_ptr + base + here, mask=mask).to(tl.float32)
        w = tl.load(w_ptr + here, mask=mask).to(tl.float32)
        b = tl.load(b_ptr + here, mask=mask).to(tl.float32)
        tl.store(out_ptr + base + here, (x - mean) * scale * w + b, mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = (t.contiguous() for t in (x, weight, bias))
    n_cols = x.shape[-1]
    out = torch.empty_like(x)
    BLOCK = min(4096, triton.next_power_of_2(n_cols))
    kernel[(x.numel() // n_cols,)](x, weight, bias, out, n_cols, eps, BLOCK=BLOCK)
    return out
