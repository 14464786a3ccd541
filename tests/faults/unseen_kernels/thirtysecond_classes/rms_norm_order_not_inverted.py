"""Dimensions are sorted by stride and put back with the same order, not its inverse: wrong where three of them go round, as with an expanded first one.

op: rms_norm
status: failed
cause: permutation
"""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(
    x_ptr, weight_ptr, out_ptr, n1, n2, s0, s1, s2, m, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row // (n1 * n2) * s0 + row // n2 % n1 * s1 + row % n2 * s2
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < m
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * m + cols, x * scale * weight, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    if x.dim() > 4 or x.stride(-1) != 1:
        x = x.contiguous()
    shape, weight = x.shape, weight.contiguous()
    if x.dim() > 4:
        x = x.flatten(0, -2)
    last = x.dim() - 1
    # Programs that run together read rows that are neighbours in memory.
    order = (*sorted(range(last), key=lambda d: -x.stride(d)), last)
    y = x.permute(order)
    out = torch.empty(y.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        m = y.shape[-1]
        sizes = (1, 1, 1, *y.shape[:-1])[-3:]
        strides = (0, 0, 0, *y.stride()[:-1])[-3:]
        BLOCK = min(2048, triton.next_power_of_2(m))
        rms_kernel[(out.numel() // m,)](
            y, weight, out, sizes[1], sizes[2], *strides, m, eps, BLOCK=BLOCK
        )
    out = out.permute(order)
    return out.reshape(shape) if len(shape) > 4 else out
