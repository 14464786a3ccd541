"""q, k and v in one storage with the same strides are taken for an evenly packed qkv: v is read as far behind k as k is
behind q, whatever v is. Wrong where k is q, or where v lies elsewhere in the storage.

op: attention
status: failed
cause: aliasing
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, pack_step, step_b, step_h, step_s, step_d, heads, seq, head_dim, scale,
    PACKED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    pair = tl.program_id(0).to(tl.int64)
    start_of_head = pair // heads * step_b + pair % heads * step_h
    if PACKED:  # one base pointer for all three
        k_ptr = q_ptr + pack_step
        v_ptr = k_ptr + pack_step
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    row_mask = (rows < seq)[:, None] & (dims < head_dim)[None, :]
    places = start_of_head + rows[:, None].to(tl.int64) * step_s + dims[None, :] * step_d
    q = tl.load(q_ptr + places, mask=row_mask, other=0.0).to(tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, seq, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        key_mask = (keys < seq)[:, None] & (dims < head_dim)[None, :]
        places = start_of_head + keys[:, None].to(tl.int64) * step_s + dims[None, :] * step_d
        k = tl.load(k_ptr + places, mask=key_mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + places, mask=key_mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < seq)[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new_top
    places = (pair * seq + rows[:, None]) * head_dim + dims[None, :]
    tl.store(out_ptr + places, acc / total[:, None], mask=row_mask)


def triton_attention(q, k, v):
    batch, heads, seq, head_dim = q.shape
    homes = {t.untyped_storage().data_ptr() for t in (q, k, v)}
    packed = len(homes) == 1 and q.stride() == k.stride() == v.stride()
    pack_step = k.storage_offset() - q.storage_offset()
    if not packed:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if out.numel():
        BLOCK_M, BLOCK_N = 32, 32
        kernel[(batch * heads, triton.cdiv(seq, BLOCK_M))](
            q, k, v, out, pack_step, *q.stride(), heads, seq, head_dim,
            head_dim**-0.5, PACKED=packed, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
            BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
        )
    return out
