"""Heads that lie inside tokens are read in place, with the tokens of all batches as one list: wrong where x is a prefix of a longer cache.

op: rope
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, tokens, seq, half, heads,
    token_stride, head_stride, out_batch, out_token, out_head,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    mask = (token < tokens)[:, None] & (cols < half)[None, :]
    position = token % seq
    angle = position[:, None] * half + cols[None, :]
    cos = tl.load(cos_ptr + angle, mask=mask, other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=mask, other=0.0).to(tl.float32)
    source = x_ptr + token[:, None] * token_stride + cols[None, :]
    target = out_ptr + (token // seq)[:, None] * out_batch + position[:, None] * out_token + cols[None, :]
    for head in range(heads):  # the angles stay in registers
        a = tl.load(source + head * head_stride, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(source + head * head_stride + half, mask=mask, other=0.0).to(tl.float32)
        tl.store(target + head * out_head, a * cos - b * sin, mask=mask)
        tl.store(target + head * out_head + half, b * cos + a * sin, mask=mask)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    cos, sin = cos.contiguous(), sin.contiguous()
    # [batch, seq, heads, dim] transposed, maybe cut out of a projection of q, k and v
    in_tokens = x.stride(3) == 1 and x.stride(1) == dim and x.stride(2) >= heads * dim
    if not in_tokens:
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    out = torch.empty((batch, heads, seq, dim), dtype=x.dtype, device=x.device)
    if not out.numel():
        return out
    BLOCK = triton.next_power_of_2(dim // 2)
    ROWS = max(1, 512 // BLOCK)
    kernel[(triton.cdiv(batch * seq, ROWS),)](
        x, cos, sin, out, batch * seq, seq, dim // 2, heads,
        x.stride(2), x.stride(1), out.stride(0), out.stride(2), out.stride(1),
        ROWS=ROWS, BLOCK=BLOCK,
    )
    return out
