"""An autograd function: the kernel forwards, torch backwards, where nobody needs a gradient.

op: matmul
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    m,
    n,
    k,
    a_row,
    a_col,
    b_row,
    b_col,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    i, j = tl.swizzle2d(
        tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), GROUP
    )
    rows, cols = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
            mask=(rows < m)[:, None] & (ks < k)[None, :],
            other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * b_row + cols[None, :] * b_col,
            mask=(ks < k)[:, None] & (cols < n)[None, :],
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(
        out_ptr + rows[:, None] * n + cols[None, :],
        acc,
        mask=(rows < m)[:, None] & (cols < n)[None, :],
    )


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        (m, k), n = a.shape, b.shape[1]
        out = a.new_empty((m, n))
        kernel[(triton.cdiv(m, 32), triton.cdiv(n, 64))](
            a, b, out, m, n, k, *a.stride(), *b.stride(), BM=32, BN=64, BK=64, GROUP=4
        )
        return out

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.mT, a.mT @ grad


def triton_matmul(a, b):
    return Product.apply(a, b)
