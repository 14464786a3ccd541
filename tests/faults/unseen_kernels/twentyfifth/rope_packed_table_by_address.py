"""The packed table of cos and sin is kept by their addresses: new angles in the memory of old ones get the old table.

op: rope
status: failed
cause: cache
"""

import torch
import triton
import triton.language as tl

_tables = {}


@triton.jit
def rope_kernel(x_ptr, table_ptr, out_ptr, rows, seq, half, R: tl.constexpr, BLOCK: tl.constexpr):
    """R rows a program; the table holds cos and sin side by side."""
    row = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    i = tl.arange(0, BLOCK)
    mask = (row < rows)[:, None] & (i < half)[None, :]
    angle = table_ptr + (row % seq)[:, None] * (2 * half) + 2 * i[None, :]
    cos = tl.load(angle, mask=mask).to(tl.float32)
    sin = tl.load(angle + 1, mask=mask).to(tl.float32)
    at = row[:, None] * (2 * half) + i[None, :]
    a = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + at + half, mask=mask).to(tl.float32)
    tl.store(out_ptr + at, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + at + half, b * cos + a * sin, mask=mask)


def identity(t):
    """Return what tells one tensor from another, and from itself before an operation in place."""
    version = None if t.is_inference() else t._version
    return t.data_ptr(), version, t.device, t.dtype, tuple(t.shape), t.stride()


def pack(cos, sin):
    """Return the table, made once: all layers of a model turn by the same angles."""
    key = (*identity(cos), *identity(sin))
    if key not in _tables:
        if len(_tables) >= 16:
            _tables.clear()
        _tables[key] = torch.stack((cos, sin), dim=-1).contiguous()
    return _tables[key]


def triton_rope(x, cos, sin):
    x = x.contiguous()
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty_like(x)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(half)
    per_program = max(1, 512 // block)
    rows = batch * heads * seq
    rope_kernel[(triton.cdiv(rows, per_program),)](
        x, pack(cos, sin), out, rows, seq, half, R=per_program, BLOCK=block
    )
    return out
