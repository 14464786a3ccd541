"""The schedule, with the number of tiles that need no mask, is stored by the number of tiles: a sequence that fills its last tile leaves the next one without a mask there.

op: mha
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl


_schedules = {}


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, schedule_ptr, seq, dim, scale,
    CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * seq * dim
    tile = tl.program_id(1)
    whole = tl.load(schedule_ptr + 2 * tile)
    end = tl.load(schedule_ptr + 2 * tile + 1)
    rows = tile * BM + tl.arange(0, BM)
    ds = tl.arange(0, BD)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + base + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0).to(tl.float32)
    largest = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, BD), dtype=tl.float32)
    for step in range(0, end):
        cols = step * BN + tl.arange(0, BN)
        mask = (cols < seq)[:, None] & (ds < dim)[None, :]
        at = base + cols[:, None] * dim + ds[None, :]
        k = tl.load(k_ptr + at, mask=mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + at, mask=mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        if step >= whole:
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


def schedule(seq, tile, is_causal, device):
    """Return for each tile of queries the tiles of keys without a mask, and all of them."""
    tiles = triton.cdiv(seq, tile)
    key = (tiles, is_causal, device)
    if key not in _schedules:
        if is_causal:
            plan = [(i, i + 1) for i in range(tiles)]
        else:
            plan = [(seq // tile, tiles)] * tiles
        _schedules[key] = torch.tensor(plan, dtype=torch.int32, device=device)
    return _schedules[key]


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    kernel[(batch * heads, triton.cdiv(seq, 32))](
        q, k, v, out, schedule(seq, 32, is_causal, q.device), seq, dim, dim**-0.5,
        CAUSAL=is_causal, BM=32, BN=32, BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
