"""The order of the query tiles is stored by length and mask, not by the tile's height, which is 64 or 32 by head_dim: a head_dim above 64 after a smaller one of the same length leaves rows unwritten.

op: mha
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_orders = {}


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, out_ptr, order_ptr, seq, dim, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * seq * dim
    first = tl.load(order_ptr + tl.program_id(0)) * BM
    rows = first + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    end = seq
    if CAUSAL:
        end = tl.minimum(seq, first + BM)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        allowed = (cols < seq)[None, :]
        if CAUSAL:
            allowed = allowed & (cols[None, :] <= rows[:, None])
        scores = tl.where(allowed, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, axis=1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        largest = new
    tl.store(out_ptr + base + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


def order_of(seq, height, is_causal, device):
    """Tiles with the longest rows first, so that the short ones fill the gaps at the end."""
    key = (seq, is_causal, device)
    if key not in _orders:
        tiles = torch.arange(triton.cdiv(seq, height), dtype=torch.int32)
        _orders[key] = (tiles.flip(0) if is_causal else tiles).to(device)
    return _orders[key]


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    height = 64 if dim <= 64 else 32
    order = order_of(seq, height, is_causal, q.device)
    out = torch.empty_like(q)
    kernel[(order.numel(), batch * heads)](
        q, k, v, out, order, seq, dim, dim**-0.5, CAUSAL=is_causal,
        BM=height, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
