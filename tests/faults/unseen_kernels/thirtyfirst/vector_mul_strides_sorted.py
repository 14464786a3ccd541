"""Dense tensors of one layout are taken in the order of memory; layouts are compared by sorted strides, in any order.

op: vector_mul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, x * y, mask=mask)


def dense_strides(x):
    """Return the strides of the longer dimensions from the outermost in; None: there are gaps."""
    pairs = sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1)
    expected = 1
    for stride, length in pairs:
        if stride != expected:
            return None
        expected *= length
    return pairs[::-1]


def triton_vector_mul(x, y):
    strides = dense_strides(x)
    if strides is None or strides != dense_strides(y):
        x, y = x.contiguous(), y.contiguous()
    # Of a dense tensor this keeps the strides, so one order of memory serves all three.
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        BLOCK = 1024
        kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
    return out
