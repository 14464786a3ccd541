"""Attention with an online softmax: a tile of queries stays, tiles of keys stream past."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 32
WARPS = 4
STAGES = 2


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, d, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    base = tl.program_id(1).to(tl.int64) * seq * d
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    lanes = tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + base + rows * d + lanes, mask=(rows < seq) & (lanes < d), other=0.0)
    m = tl.full((BM, 1), -float("inf"), tl.float32)
    s = tl.zeros((BM, 1), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, seq, BN):
        keys = start + tl.arange(0, BN)[:, None]
        mask = (keys < seq) & (lanes < d)
        k = tl.load(k_ptr + base + keys * d + lanes, mask=mask, other=0.0)
        v = tl.load(v_ptr + base + keys * d + lanes, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        valid = (start + tl.arange(0, BN)[None, :]) < seq
        scores = tl.where(valid, scores, -float("inf"))
        new = tl.maximum(m, tl.max(scores, axis=1, keep_dims=True))
        p = tl.exp(scores - new)
        shrink = tl.exp(m - new)
        s = s * shrink + tl.sum(p, axis=1, keep_dims=True)
        total = tl.dot(p.to(v.dtype), v, total * shrink, input_precision=PRECISION)
        m = new
    tl.store(
        out_ptr + base + rows * d + lanes, (total / s).to(out_ptr.dtype.element_ty),
        mask=(rows < seq) & (lanes < d),
    )  # fmt: skip


def triton_attention(q, k, v):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, d = q.shape
    out = torch.empty_like(q)
    precision = "tf32x3" if q.dtype == torch.float32 else "tf32"
    attention_kernel[(triton.cdiv(seq, BLOCK_M), batch * heads)](
        q, k, v, out, seq, d, d**-0.5,
        BM=BLOCK_M, BN=BLOCK_N, D=max(triton.next_power_of_2(d), 16), PRECISION=precision,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return out
