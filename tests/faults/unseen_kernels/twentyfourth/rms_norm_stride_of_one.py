"""The distance of two rows is the stride of the last dimension but one, also where that has one element: it means nothing there.

op: rms_norm
status: failed
cause: stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, weight_ptr, out_ptr, m, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    out_ptr += row * m
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / m + eps)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < m, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, x * scale * weight, mask=cols < m)


def is_even(x):
    """Return whether the rows of x lie at equal distances, each of them contiguous."""
    if x.stride(-1) != 1 and x.shape[-1] > 1:
        return False
    expected = None
    for size, stride in zip(reversed(x.shape[:-1]), reversed(x.stride()[:-1])):
        if size == 1:  # its stride is never used
            continue
        if expected is not None and stride != expected:
            return False
        expected = size * stride
    return True


def triton_rms_norm(x, weight, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    m = x.shape[-1]
    # Slices of the heads or of the sequence are normalised in place, without a copy.
    x = x if is_even(x) else x.contiguous()
    stride = x.stride(-2) if x.dim() > 1 else m
    BLOCK = min(4096, triton.next_power_of_2(m))
    kernel[(x.numel() // m,)](x, weight.contiguous(), out, m, stride, eps, BLOCK=BLOCK)
    return out
