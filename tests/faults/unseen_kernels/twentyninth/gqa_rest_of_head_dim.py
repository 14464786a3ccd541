"""head_dim is a power of two and a rest; any multiple of 16 goes unmasked, though a rest of 48 is loaded as 64.

op: gqa
status: failed
cause: divisibility
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(ptr, rows, ds, seq, dim, stride_s, stride_d, EVEN_D: tl.constexpr):
    mask = (rows < seq)[:, None]
    if not EVEN_D:
        mask = mask & (ds < dim)[None, :]
    return tl.load(ptr + rows[:, None].to(tl.int64) * stride_s + ds[None, :] * stride_d, mask=mask, other=0.0)


@triton.jit(do_not_specialize=["heads", "seq"])
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, heads, seq, dim, scale,
    q_b, q_h, q_s, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, MOST: tl.constexpr, REST: tl.constexpr,
    EVEN_D: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    b, h = head // heads, head % heads
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d0 = tl.arange(0, MOST)
    q_ptr += b * q_b + h * q_h
    k_ptr += b * k_b + (h // GROUP) * k_h
    v_ptr += b * v_b + (h // GROUP) * v_h
    out_ptrs = out_ptr + (head * seq + rows[:, None]) * dim
    q0 = tile(q_ptr, rows, d0, seq, dim, q_s, q_d, EVEN_D)
    acc0 = tl.zeros((BLOCK_M, MOST), dtype=tl.float32)
    if REST > 0:
        d1 = MOST + tl.arange(0, REST)
        q1 = tile(q_ptr, rows, d1, seq, dim, q_s, q_d, EVEN_D)
        acc1 = tl.zeros((BLOCK_M, REST), dtype=tl.float32)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    end = seq
    if CAUSAL:  # no key after the tile's last query is visible
        end = tl.minimum(seq, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.dot(q0, tl.trans(tile(k_ptr, cols, d0, seq, dim, k_s, k_d, EVEN_D)), input_precision="ieee")
        if REST > 0:
            k1 = tile(k_ptr, cols, d1, seq, dim, k_s, k_d, EVEN_D)
            s = tl.dot(q1, tl.trans(k1), s, input_precision="ieee")
        visible = (cols < seq)[None, :]
        if CAUSAL:
            visible = visible & (cols[None, :] <= rows[:, None])
        s = tl.where(visible, s * scale, -float("inf"))
        new = tl.maximum(largest, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(largest - new)
        total = total * shrink + tl.sum(p, axis=1)
        v0 = tile(v_ptr, cols, d0, seq, dim, v_s, v_d, EVEN_D)
        acc0 = tl.dot(p.to(v0.dtype), v0, acc0 * shrink[:, None], input_precision="ieee")
        if REST > 0:
            v1 = tile(v_ptr, cols, d1, seq, dim, v_s, v_d, EVEN_D)
            acc1 = tl.dot(p.to(v1.dtype), v1, acc1 * shrink[:, None], input_precision="ieee")
        largest = new
    inside = (rows < seq)[:, None]
    tl.store(out_ptrs + d0[None, :], acc0 / total[:, None], mask=inside & (d0 < dim)[None, :])
    if REST > 0:
        tl.store(out_ptrs + d1[None, :], acc1 / total[:, None], mask=inside & (d1 < dim)[None, :])


def parts_of(dim):
    """80 is 64 and 16, 96 is 64 and 32, 160 is 128 and 32: a third less than the next power of two."""
    most = max(16, 2 ** (dim.bit_length() - 1))
    return most, max(16, triton.next_power_of_2(dim - most)) if dim > most else 0


def triton_gqa(q, k, v, is_causal=False):
    batch, heads, seq, dim = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        MOST, REST = parts_of(dim)
        BLOCK_M, BLOCK_N = (32, 32) if q.dtype == torch.float32 or dim > 128 else (64, 64)
        attention_kernel[(triton.cdiv(seq, BLOCK_M), batch * heads)](
            q, k, v, out, heads, seq, dim, dim**-0.5, *q.stride(), *k.stride(), *v.stride(),
            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, MOST=MOST, REST=REST, EVEN_D=dim % 16 == 0,
            CAUSAL=bool(is_causal), GROUP=heads // k.shape[1], num_warps=4, num_stages=2,
        )
    return out
