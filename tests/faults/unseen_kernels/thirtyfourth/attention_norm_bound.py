"""In place of a running maximum the bound |q| * max |k| (Cauchy-Schwarz): no rescaling. Wrong where the
bound is more than about 90 above a row's scores, as with long q and k that are nearly orthogonal: 0 / 0.

op: attention
status: failed
cause: underflow under a bound
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _norms(k, out, seq, d, heads, kb, kh, ks, kd, BN: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    base = k + pid // heads * kb + pid % heads * kh
    rd = tl.arange(0, BD).to(tl.int64)
    best = tl.zeros((BN,), tl.float32)
    for start in range(0, seq, BN):
        rn = start + tl.arange(0, BN).to(tl.int64)
        x = tl.load(base + rn[:, None] * ks + rd[None, :] * kd, mask=(rn[:, None] < seq) & (rd[None, :] < d), other=0.0)
        x = x.to(tl.float32)
        best = tl.maximum(best, tl.sum(x * x, axis=1))
    tl.store(out + pid, tl.sqrt(tl.max(best, axis=0)))


@triton.jit
def _attend(q, k, v, norms, out, seq, d, heads, scale, qb, qh, qs, qd, kb, kh, ks, kd, vb, vh, vs, vd,
            BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    pid = tl.program_id(1).to(tl.int64)
    rm = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    rd = tl.arange(0, BD).to(tl.int64)
    mask_q = (rm[:, None] < seq) & (rd[None, :] < d)
    x = tl.load(q + pid // heads * qb + pid % heads * qh + rm[:, None] * qs + rd[None, :] * qd, mask=mask_q, other=0.0)
    x = x.to(tl.float32) * scale
    bound = tl.sqrt(tl.sum(x * x, axis=1)) * tl.load(norms + pid)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, seq, BN):
        rn = start + tl.arange(0, BN).to(tl.int64)
        mask = (rn[:, None] < seq) & (rd[None, :] < d)
        y = tl.load(k + pid // heads * kb + pid % heads * kh + rn[:, None] * ks + rd[None, :] * kd, mask=mask, other=0.0)
        z = tl.load(v + pid // heads * vb + pid % heads * vh + rn[:, None] * vs + rd[None, :] * vd, mask=mask, other=0.0)
        s = tl.dot(x, tl.trans(y.to(tl.float32)), input_precision="ieee")
        p = tl.where(rn[None, :] < seq, tl.exp(s - bound[:, None]), 0.0)
        total += tl.sum(p, axis=1)
        acc += tl.dot(p, z.to(tl.float32), input_precision="ieee")
    to = out + (pid * seq + rm[:, None]) * d + rd[None, :]
    tl.store(to, (acc / total[:, None]).to(out.dtype.element_ty), mask=mask_q)


def triton_attention(q, k, v):
    batch, heads, seq, d = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel() == 0:
        return out
    norms = torch.empty(batch * heads, dtype=torch.float32, device=q.device)
    bd = max(16, triton.next_power_of_2(d))
    _norms[(batch * heads,)](k, norms, seq, d, heads, *k.stride(), BN=64, BD=bd)
    grid = (triton.cdiv(seq, 64), batch * heads)
    _attend[grid](q, k, v, norms, out, seq, d, heads, d**-0.5, *q.stride(), *k.stride(), *v.stride(), BM=64, BN=64, BD=bd)
    return out
