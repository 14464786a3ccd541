"""The last step along k is moved back to a full one, and what it has in common with the step before is cleared.

op: matmul
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    in_m, in_n = (rows < M)[:, None], (cols < N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        first = tl.maximum(tl.minimum(start, K - BK), 0)
        ks = (first + tl.arange(0, BK)).to(tl.int64)
        fresh = (ks >= start) & (ks < K)
        a = tl.load(a_ptr + rows[:, None] * am + ks[None, :] * ak, mask=in_m & fresh[None, :], other=0.0)
        # The load of b is masked only where k is less than a step: the overlap is there to be read,
        # and is cleared afterwards, as an infinity in it would meet a zero of a.
        b = tl.load(b_ptr + ks[:, None] * bk + cols[None, :] * bn, mask=in_n & (ks < K)[:, None], other=0.0)
        b = tl.where(fresh[:, None], b, 0.0).to(a.dtype)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=in_m & in_n)


def triton_matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, out, M, N, K, *a.stride(), *b.stride(), BM=64, BN=64, BK=32
    )
    return out
