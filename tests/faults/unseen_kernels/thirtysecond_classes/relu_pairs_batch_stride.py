"""Half types go in pairs, where the row stride is even; the batch stride is halved unchecked, so an odd one reads the wrong elements.

op: relu
status: failed
cause: stride
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.where(x < 0, 0.0, x), mask=at < n)


@triton.jit
def relu_bits(half, INFINITY: tl.constexpr):
    # Negative, and no NaN.
    return tl.where((half >= 0x8000) & ((half & 0x7FFF) <= INFINITY), 0, half)


@triton.jit
def pairs_kernel(
    x_ptr, out_ptr, rows, words, batch_stride, row_stride, INFINITY: tl.constexpr, BLOCK: tl.constexpr
):
    """Two elements in one word of 32 bits; strides count words."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr = x_ptr.to(tl.pointer_type(tl.int32)) + row // rows * batch_stride + row % rows * row_stride
    out_ptr = out_ptr.to(tl.pointer_type(tl.int32)) + row * words
    for start in range(0, words, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        word = tl.load(x_ptr + cols, mask=cols < words, other=0)
        low = relu_bits(word & 0xFFFF, INFINITY)
        high = relu_bits((word >> 16) & 0xFFFF, INFINITY)
        tl.store(out_ptr + cols, low | (high << 16), mask=cols < words)


def fits_pairs(x):
    return (
        x.dim() == 3
        and x.element_size() == 2
        and x.stride(2) == 1
        and x.shape[2] % 2 == 0
        and x.stride(1) % 2 == 0
        and x.data_ptr() % 4 == 0
    )


def triton_relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    if fits_pairs(x):  # rows with gaps need no copy
        batch, rows, m = x.shape
        pairs_kernel[(batch * rows,)](
            x, out, rows, m // 2, x.stride(0) // 2, x.stride(1) // 2,
            INFINITY=0x7C00 if x.dtype == torch.float16 else 0x7F80,
            BLOCK=min(1024, triton.next_power_of_2(m // 2)),
        )
        return out
    x = x.contiguous()
    flat_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
