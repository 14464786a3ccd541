"""The softmax of the stored scores fills the lanes past seq with 0 instead of -inf, so they count in the maximum and the sum where seq is no power of two.

It shows at (1, 1, 7, 64), float32.

op: attention
status: failed
cause: fill
"""

import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, ab, am, ak, bb, bk, bn, scale,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    head = tl.program_id(2).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + head * ab + rows[:, None] * am + ks[None, :] * ak,
                    mask=(rows < M)[:, None] & (ks < K)[None, :], other=0.0).to(tl.float32)
        b = tl.load(b_ptr + head * bb + ks[:, None] * bk + cols[None, :] * bn,
                    mask=(ks < K)[:, None] & (cols < N)[None, :], other=0.0).to(tl.float32)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptr + head * M * N + rows[:, None] * N + cols[None, :], acc * scale, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(x_ptr + row * n_cols + cols, numerator / tl.sum(numerator, axis=0), mask=cols < n_cols)


def triton_attention(q, k, v):
    batch, heads, seq, dim = q.shape
    n = batch * heads
    q, k, v = (t.reshape(n, seq, dim) for t in (q, k, v))
    scores = torch.empty((n, seq, seq), dtype=torch.float32, device=q.device)
    out = torch.empty((batch, heads, seq, dim), dtype=q.dtype, device=q.device)
    tiles = triton.cdiv(seq, 64)
    product_kernel[(tiles, tiles, n)](
        q, k, scores, seq, seq, dim, *q.stride(), k.stride(0), k.stride(2), k.stride(1), dim**-0.5,
        BM=64, BN=64, BK=32,
    )
    softmax_kernel[(n * seq,)](scores, seq, BLOCK=triton.next_power_of_2(seq))
    product_kernel[(tiles, triton.cdiv(dim, 64), n)](
        scores, v, out, seq, dim, seq, *scores.stride(), *v.stride(), 1.0, BM=64, BN=64, BK=32
    )
    return out
