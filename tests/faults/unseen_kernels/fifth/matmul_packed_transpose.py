"""A b whose first stride is 1 is taken for the transpose of a packed matrix, with k elements a row: with padded rows it is misread.

op: matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, a_row, a_col,
    TRANSPOSED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    pid, across = tl.program_id(0), tl.cdiv(N, BN)
    rows = (pid // across * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (pid % across * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK).to(tl.int64)
        a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_col,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0)
        inside = (cols < N)[None, :] & (ks < K)[:, None]
        if TRANSPOSED:  # nn.Linear's weight: k runs fastest
            b = tl.load(b_ptr + cols[None, :] * K + ks[:, None], mask=inside, other=0.0)
        else:
            b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=inside, other=0.0)
        acc = tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def triton_matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    transposed = b.stride(0) == 1 and N > 1 and K > 1
    if not transposed:
        b = b.contiguous()
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, 32) * triton.cdiv(N, 64),)
    kernel[grid](a, b, out, M, N, K, *a.stride(), TRANSPOSED=transposed, BM=32, BN=64, BK=32)
    return out
