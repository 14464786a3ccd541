"""A causal bias of zeros and -inf is kept by the length, because it follows from it alone.

op: mha
status: passed
drawn: no
round: second
"""

import torch
import triton
import triton.language as tl


@triton.jit
def bias_kernel(bias_ptr, seq, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, seq, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        bias = tl.where(cols <= row, 0.0, -float("inf"))
        tl.store(bias_ptr + row * seq + cols, bias, mask=cols < seq)


@triton.jit
def kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    bias_ptr,
    out_ptr,
    seq,
    dim,
    scale,
    CAUSAL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BD: tl.constexpr,
):
    rows, ds = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    head = tl.program_id(1).to(tl.int64) * seq * dim
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q = tl.load(q_ptr + head + rows[:, None] * dim + ds[None, :], mask=inside, other=0.0)
    largest = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, seq, BN):
        keys = start + tl.arange(0, BN)
        there = (keys < seq)[:, None] & (ds < dim)[None, :]
        k = tl.load(k_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        v = tl.load(v_ptr + head + keys[:, None] * dim + ds[None, :], mask=there, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        s = tl.where((keys < seq)[None, :], s, -float("inf"))
        if CAUSAL:
            s += tl.load(
                bias_ptr + rows[:, None] * seq + keys[None, :],
                mask=(rows < seq)[:, None] & (keys < seq)[None, :],
                other=0.0,
            )
        new = tl.maximum(largest, tl.max(s, axis=1))
        p, shrink = tl.exp(s - new[:, None]), tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        largest = new
    tl.store(out_ptr + head + rows[:, None] * dim + ds[None, :], acc / total[:, None], mask=inside)


BIASES = {}


def bias_of(seq, device):
    key = (seq, device)
    if key not in BIASES:
        BIASES.clear()
        BIASES[key] = torch.empty((seq, seq), dtype=torch.float32, device=device)
        bias_kernel[(seq,)](BIASES[key], seq, BLOCK=1024)
    return BIASES[key]


def triton_mha(q, k, v, is_causal=False):
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    batch, heads, seq, dim = q.shape
    out = torch.empty_like(q)
    bias = bias_of(seq, q.device) if is_causal else q
    kernel[(triton.cdiv(seq, 64), batch * heads)](
        q,
        k,
        v,
        bias,
        out,
        seq,
        dim,
        dim**-0.5,
        CAUSAL=is_causal,
        BM=64,
        BN=64,
        BD=max(16, triton.next_power_of_2(dim)),
    )
    return out
