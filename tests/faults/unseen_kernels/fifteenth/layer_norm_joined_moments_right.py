"""Each piece of a row gets its own mean and squared distances, which are joined by Chan's formula with the numbers of elements; a second pass writes.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, out_ptr, m, eps, w_stride, b_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + row * m).to(tl.float32)  # distances to it: a level costs no digits
    mean = 0.0
    squares = 0.0
    for start in range(0, m, BLOCK):
        inside = start + cols < m
        x = tl.load(x_ptr + row * m + start + cols, mask=inside, other=0.0).to(tl.float32)
        x = tl.where(inside, x - first, 0.0)
        count = tl.minimum(m - start, BLOCK).to(tl.float32)
        own = tl.sum(x, axis=0) / count
        d = tl.where(inside, x - own, 0.0)
        delta = own - mean
        share = count / (start + count)
        squares += tl.sum(d * d, axis=0) + delta * delta * (start * share)
        mean += delta * share
    factor = 1.0 / tl.sqrt(squares / m + eps)
    for start in range(0, m, BLOCK):
        inside = start + cols < m
        x = tl.load(x_ptr + row * m + start + cols, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + (start + cols) * w_stride, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + (start + cols) * b_stride, mask=inside, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + start + cols, (x - first - mean) * factor * w + b, mask=inside)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return out
    x = x.contiguous()
    m = x.shape[-1]
    kernel[(x.numel() // m,)](
        x, weight, bias, out, m, eps, weight.stride(0), bias.stride(0), BLOCK=min(512, triton.next_power_of_2(m))
    )
    return out
