"""The block pointer of b takes rows of n elements, also where they are further apart.

op: matmul
status: failed
cause: wrong_stride
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
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_block_ptr(a_ptr, (m, k), (a_row, a_col), (i, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (0, j), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        left = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        right = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(left, right, acc, input_precision="ieee")
        a, b = tl.advance(a, (0, BK)), tl.advance(b, (BK, 0))
    out = tl.make_block_ptr(out_ptr, (m, n), (n, 1), (i, j), (BM, BN), (1, 0))
    tl.store(out, acc.to(out_ptr.dtype.element_ty), boundary_check=(0, 1))


def triton_matmul(a, b):
    if b.stride(1) != 1:
        b = b.contiguous()
    (m, k), n = a.shape, b.shape[1]
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(m, 64), triton.cdiv(n, 64))](
        a, b, out, m, n, k, a.stride(0), a.stride(1), BM=64, BN=64, BK=32
    )
    return out
