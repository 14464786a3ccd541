"""One factor stays on its first block.

op: matmul
status: wrong_values
from: matmul_block_pointers
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_block = tl.make_block_ptr(a_ptr, (M, K), (am, ak), (row, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (bk, bn), (0, col), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (0, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, col), (BM, BN), (1, 0))
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


def triton_matmul(a, b):
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BM=64, BN=64, BK=32
    )
    return c
