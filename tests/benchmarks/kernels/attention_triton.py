"""Forward attention in Triton with tensor descriptors; parameters for a search."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634

# A call has two dozen arguments; one to a line would hide the kernel.
# fmt: off


@triton.jit
def step(
    q, k_desc, v_desc, kv, start, row, largest, total, acc, seq, scale, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr,
):
    k = k_desc.load([kv, start, 0]).reshape([BLOCK_N, BLOCK_D])
    s = tl.dot(q, k.T)
    if MASKED:
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
        if CAUSAL:
            rows = row + tl.arange(0, BLOCK_M)
            s = tl.where(cols[None, :] <= rows[:, None], s, -float("inf"))
    new = tl.maximum(largest, tl.max(s, axis=1) * scale)
    p = tl.exp2(s * scale - new[:, None])
    shrink = tl.exp2(largest - new)
    total = total * shrink + tl.sum(p, axis=1)
    acc = acc * shrink[:, None]
    v = v_desc.load([kv, start, 0]).reshape([BLOCK_N, BLOCK_D])
    acc = tl.dot(p.to(v.dtype), v, acc)
    return new, total, acc


@triton.jit(do_not_specialize=["heads", "blocks", "seq", "group"])
def kernel(
    q_desc, k_desc, v_desc, out_desc, heads, blocks, seq, group, scale, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr, SECTION: tl.constexpr,
):
    t = tl.program_id(0)
    section = t // (SECTION * blocks)
    rest = t % (SECTION * blocks)
    width = tl.minimum(SECTION, heads - section * SECTION)
    head = section * SECTION + rest % width
    row = (blocks - 1 - rest // width) * BLOCK_M
    kv = head // group
    q = q_desc.load([head, row, 0]).reshape([BLOCK_M, BLOCK_D])
    largest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    if CAUSAL:
        clear = row // BLOCK_N * BLOCK_N
        last = tl.minimum(seq, row + BLOCK_M)
    else:
        clear = seq // BLOCK_N * BLOCK_N
        last = seq
    for start in range(0, clear, BLOCK_N):
        largest, total, acc = step(
            q, k_desc, v_desc, kv, start, row, largest, total, acc, seq, scale, BLOCK_M, BLOCK_N,
            BLOCK_D, False, CAUSAL,
        )
    for start in range(clear, last, BLOCK_N):
        largest, total, acc = step(
            q, k_desc, v_desc, kv, start, row, largest, total, acc, seq, scale, BLOCK_M, BLOCK_N,
            BLOCK_D, True, CAUSAL,
        )
    acc = acc / total[:, None]
    out_desc.store([head, row, 0], acc.to(out_desc.dtype).reshape([1, BLOCK_M, BLOCK_D]))


def described(x, rows):
    x = x.view(-1, *x.shape[-2:])
    return TensorDescriptor(x, list(x.shape), list(x.stride()), [1, rows, x.shape[-1]])


def attention(
    q,
    k,
    v,
    causal=False,
    out=None,
    block_m=128,
    block_n=128,
    section=1,
    num_warps=8,
    num_stages=2,
    maxnreg=None,
    warmup=False,
):
    batch, heads, seq, dim = q.shape
    if out is None:
        out = torch.empty_like(q)
    blocks = triton.cdiv(seq, block_m)
    grid = (batch * heads * blocks,)
    args = (
        described(q, block_m),
        described(k, block_n),
        described(v, block_n),
        described(out, block_m),
        batch * heads,
        blocks,
        seq,
        heads // k.shape[1],
        dim**-0.5 * LOG2_E,
    )
    meta = {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_D": dim,
        "CAUSAL": causal,
        "SECTION": section,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }
    if maxnreg:
        meta["maxnreg"] = maxnreg
    if warmup:
        return kernel.warmup(*args, grid=grid, **meta)
    kernel[grid](*args, **meta)
    return out
