"""Tables are saved by the first angle of the last position, which doesn't depend on the base.

op: rope
status: failed
cause: state
"""

import torch
import triton
import triton.language as tl

_tables = {}


@triton.jit
def kernel(x_ptr, table_ptr, out_ptr, seq, half, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < half
    a = tl.load(x_ptr + row * 2 * half + cols, mask=mask).to(tl.float32)
    b = tl.load(x_ptr + row * 2 * half + half + cols, mask=mask).to(tl.float32)
    place = table_ptr + (row % seq) * 2 * half + 2 * cols
    cos, sin = tl.load(place, mask=mask), tl.load(place + 1, mask=mask)
    tl.store(out_ptr + row * 2 * half + cols, a * cos - b * sin, mask=mask)
    tl.store(out_ptr + row * 2 * half + half + cols, b * cos + a * sin, mask=mask)


def table_of(cos, sin):
    key = cos.shape, cos.dtype, cos.device, cos[-1, 0].item(), sin[-1, 0].item()
    if key not in _tables:
        if len(_tables) >= 32:
            _tables.clear()
        _tables[key] = torch.stack([cos.detach(), sin.detach()], dim=-1).float().contiguous()
    return _tables[key]


def triton_rope(x, cos, sin):
    x = x.contiguous()
    seq, half = cos.shape
    out = torch.empty_like(x)
    kernel[(x.numel() // (2 * half),)](
        x, table_of(cos, sin), out, seq, half, BLOCK=triton.next_power_of_2(half)
    )
    return out
