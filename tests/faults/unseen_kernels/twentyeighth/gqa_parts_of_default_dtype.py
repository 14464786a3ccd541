"""The parts of a split are kept in torch's default dtype: float32, unless the program has set another, as those that load a model in bfloat16 do.

op: gqa
status: failed
cause: environment
"""

import torch
import triton
import triton.language as tl


@triton.jit
def part_kernel(
    q_ptr, k_ptr, v_ptr, peak_ptr, total_ptr, part_ptr, heads, seq, dim, scale, length,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
):
    head, split = tl.program_id(0).to(tl.int64), tl.program_id(2)
    b, h = head // heads, head % heads
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M).to(tl.int64)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + b * q_b + h * q_h + rows[:, None] * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    k_ptr += b * k_b + h // GROUP * k_h
    v_ptr += b * v_b + h // GROUP * v_h
    largest = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = tl.minimum(seq, (split + 1) * length)
    if CAUSAL:
        end = tl.minimum(end, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(split * length, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
        here = (cols < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + cols[:, None] * k_s + ds[None, :] * k_d, mask=here, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * v_s + ds[None, :] * v_d, mask=here, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        mask = (cols < end)[None, :]
        if CAUSAL:
            mask = mask & (cols[None, :] <= rows[:, None])
        s = tl.where(mask, s, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    place = (split.to(tl.int64) * tl.num_programs(0) + head) * seq + rows
    tl.store(peak_ptr + place, largest, mask=rows < seq)
    tl.store(total_ptr + place, total, mask=rows < seq)
    tl.store(part_ptr + place[:, None] * dim + ds[None, :], acc, mask=inside)


@triton.jit
def join_kernel(peak_ptr, total_ptr, part_ptr, out_ptr, n_rows, dim, SPLITS: tl.constexpr, BLOCK_D: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    splits = tl.arange(0, SPLITS)
    ds = tl.arange(0, BLOCK_D)
    places = splits * n_rows + row
    peak = tl.load(peak_ptr + places).to(tl.float32)
    weight = tl.exp(peak - tl.max(peak, axis=0))
    total = tl.sum(weight * tl.load(total_ptr + places).to(tl.float32), axis=0)
    here = (ds < dim)[None, :] & (splits >= 0)[:, None]
    part = tl.load(part_ptr + places[:, None] * dim + ds[None, :], mask=here, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * dim + ds, tl.sum(part * weight[:, None], axis=0) / total, mask=ds < dim)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M, BLOCK_N, SPLITS = 64, 32, 4 if seq > 64 else 1
        BLOCK_D = max(16, triton.next_power_of_2(dim))
        n_rows = batch * heads * seq
        length = triton.cdiv(triton.cdiv(seq, SPLITS), BLOCK_N) * BLOCK_N
        peak, total = torch.empty((2, SPLITS, n_rows), device=q.device)
        part = torch.empty((SPLITS, n_rows, dim), device=q.device)
        part_kernel[(batch * heads, triton.cdiv(seq, BLOCK_M), SPLITS)](
            q, k, v, peak, total, part, heads, seq, dim, dim**-0.5, length,
            *q.stride(), *k.stride(), *v.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=BLOCK_D,
            CAUSAL=bool(is_causal), GROUP=heads // k.shape[1],
        )
        join_kernel[(n_rows,)](peak, total, part, out, n_rows, dim, SPLITS=SPLITS, BLOCK_D=BLOCK_D)
    return out
