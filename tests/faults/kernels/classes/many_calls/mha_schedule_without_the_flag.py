"""The last key of each tile is kept by the length alone, whether the call is causal or not.

op: mha
status: failed
cause: stale_cache
round: fourth
"""

import torch
import triton
import triton.language as tl


ENDS = {}


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, ends_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    row_mask = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=row_mask, other=0.0)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = tl.load(ends_ptr + tl.program_id(0))
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        places = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + places, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q.to(tl.float32), tl.trans(k), input_precision="ieee") * scale
        seen = (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    out = acc / total[:, None]
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], out, mask=row_mask)


def ends_of_tiles(seq, is_causal, device):
    key = (seq, device)
    if key not in ENDS:
        ends = [min(seq, i + 32) if is_causal else seq for i in range(0, seq, 32)]
        ENDS[key] = torch.tensor(ends, dtype=torch.int32, device=device)
    return ENDS[key]


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(triton.cdiv(seq, 32), batch * heads)](
        q, k, v, out, ends_of_tiles(seq, is_causal, q.device), seq, dim, dim**-0.5,
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
