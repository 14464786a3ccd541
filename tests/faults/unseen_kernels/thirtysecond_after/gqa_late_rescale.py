"""The maximum is renewed only when it grows by more than 16: weights up to exp(16) are infinite in float16.

op: gqa
status: failed
cause: overflow
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["heads", "seq"])
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, CAUSAL: tl.constexpr,
    GROUP: tl.constexpr,
):
    head = tl.program_id(0).to(tl.int64)
    b, h = head // heads, head % heads
    kv_head = h // GROUP  # GROUP heads of queries share a head of keys and values
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    q_ptr += b * q_b + h * q_h
    q = tl.load(q_ptr + rows[:, None].to(tl.int64) * q_s + ds[None, :] * q_d, mask=inside, other=0.0)
    k_ptrs = k_ptr + b * k_b + kv_head * k_h + cols[None, :].to(tl.int64) * k_s + ds[:, None] * k_d
    v_ptrs = v_ptr + b * v_b + kv_head * v_h + cols[:, None].to(tl.int64) * v_s + ds[None, :] * v_d
    peak = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    end = seq
    if CAUSAL:  # no key after the tile's last query is visible
        end = tl.minimum(seq, (tl.program_id(1) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        left = seq - start
        k = tl.load(k_ptrs, mask=(cols < left)[None, :] & (ds < dim)[:, None], other=0.0)
        s = tl.dot(q, k, input_precision="tf32x3") * scale
        visible = (cols < left)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None] - start)
        s = tl.where(visible, s, -float("inf"))
        new = tl.maximum(peak, tl.max(s, axis=1))
        # Seldom needed: sum and tile are float32 and have room for exp(16).
        if tl.max(new - peak, axis=0) > 16.0:
            shrink = tl.exp(peak - new)
            total = total * shrink
            acc = acc * shrink[:, None]
            peak = new
        p = tl.exp(s - peak[:, None])
        total += tl.sum(p, axis=1)
        v = tl.load(v_ptrs, mask=(cols < left)[:, None] & (ds < dim)[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="tf32x3")
        k_ptrs += BLOCK_N * k_s
        v_ptrs += BLOCK_N * v_s
    out = acc / total[:, None]
    tl.store(out_ptr + head * seq * dim + rows[:, None].to(tl.int64) * dim + ds[None, :], out, mask=inside)


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M = 64 if dim <= 128 else 32
        attention_kernel[(batch * heads, triton.cdiv(seq, BLOCK_M))](
            q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
            BLOCK_M=BLOCK_M, BLOCK_N=32, BLOCK_D=max(16, triton.next_power_of_2(dim)), CAUSAL=bool(is_causal),
            GROUP=heads // k.shape[1], num_warps=4,
            num_stages=2 if dim <= 128 else 1,
        )
    return out
