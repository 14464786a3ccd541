"""With is_causal the loop over keys stops BN and not BM after the first query of the block, so the queries in its second half miss the keys next to the diagonal.

It shows at shape (1, 2, 127, 64), float32, is_causal=True (right without causal and for seq <= 32).

op: mha
status: failed
cause: loop
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, seq, dim, causal, qh, qs, qd, kh, ks, kd, vh, vs, vd, scale,
    BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    q = tl.load(q_ptr + head * qh + rows[:, None] * qs + ds[None, :] * qd,
                mask=(rows < seq)[:, None] & (ds < dim)[None, :], other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if causal != 0:
        end = min(seq, tl.program_id(0) * BM + BN)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + head * kh + cols[:, None] * ks + ds[None, :] * kd, mask=mask, other=0.0)
        v = tl.load(v_ptr + head * vh + cols[:, None] * vs + ds[None, :] * vd, mask=mask, other=0.0)
        scores = tl.dot(q, tl.trans(k.to(tl.float32)), input_precision="ieee") * scale
        visible = (cols < seq)[None, :] & ((causal == 0) | (cols[None, :] <= rows[:, None]))
        scores = tl.where(visible, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v.to(tl.float32), input_precision="ieee")
        largest = new
    mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    out = acc / total[:, None]
    tl.store(out_ptr + head * seq * dim + rows[:, None] * dim + ds[None, :], out, mask=mask)


def triton_mha(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    a, b, c = (t.reshape(batch * heads, seq, dim) for t in (q, k, v))
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        a, b, c, out, seq, dim, int(is_causal), *a.stride(), *b.stride(), *c.stride(), dim**-0.5,
        BM=64, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
