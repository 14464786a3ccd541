"""One pass sums distances to the mean of the program's row before; where rows have far means, the variance cancels.

op: layer_norm
status: failed
cause: cancellation
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, n_rows, per_program, n_cols, eps, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * per_program
    last = tl.minimum(first + per_program, n_rows)
    shift = tl.load(x_ptr + first * n_cols).to(tl.float32)
    for row in range(first, last):
        at = row * n_cols
        s1 = tl.zeros((BLOCK,), dtype=tl.float32)
        s2 = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + at + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
            d = tl.where(cols < n_cols, x - shift, 0.0)
            s1 += d
            s2 += d * d
        off = tl.sum(s1, axis=0) / n_cols
        var = tl.sum(s2, axis=0) / n_cols - off * off
        mean = shift + off
        var = tl.where(var < 0.0, 0.0, var)
        inverse = 1.0 / tl.sqrt(var + eps)
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            inside = cols < n_cols
            x = tl.load(x_ptr + at + cols, mask=inside, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
            b = tl.load(b_ptr + cols, mask=inside, other=0.0).to(tl.float32)
            tl.store(out_ptr + at + cols, (x - mean) * inverse * w + b, mask=inside)
        shift = mean  # of neighbours the means are much alike


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    per_program = triton.cdiv(n_rows, 16)
    grid = (triton.cdiv(n_rows, per_program),)
    block = min(1024, triton.next_power_of_2(n_cols))
    kernel[grid](x, weight, bias, out, n_rows, per_program, n_cols, eps, BLOCK=block)
    return out
