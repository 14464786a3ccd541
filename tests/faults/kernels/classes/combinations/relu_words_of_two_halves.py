"""Two halves are one word of integers: negative ones that are no NaN become 0; the odd half comes last.

op: relu
status: passed
drawn: no
round: fourth
held_out: yes
"""

import torch
import triton
import triton.language as tl


@triton.jit
def word_kernel(x_ptr, out_ptr, n, INF: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    low, high = words & 0xFFFF, (words >> 16) & 0xFFFF
    low = tl.where((low >= 0x8000) & (low <= 0x8000 + INF), 0, low)
    high = tl.where((high >= 0x8000) & (high <= 0x8000 + INF), 0, high)
    tl.store(out_ptr + offsets, low | (high << 16), mask=offsets < n)


@triton.jit
def half_kernel(x_ptr, out_ptr, start, n, BLOCK: tl.constexpr):
    offsets = start + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)


def triton_relu(x):
    flat = x.contiguous().view(-1)
    out = torch.empty_like(flat)
    n = flat.numel()
    aligned = flat.data_ptr() % 4 == 0 and out.data_ptr() % 4 == 0 and flat.storage_offset() % 2 == 0
    if x.element_size() != 2 or not aligned or out.storage_offset() % 2 or n < 2:
        half_kernel[(triton.cdiv(n, 1024),)](flat, out, 0, n, BLOCK=1024)
        return out.view(x.shape)
    even = n // 2 * 2
    inf = 0x7C00 if x.dtype == torch.float16 else 0x7F80
    word_kernel[(triton.cdiv(n // 2, 1024),)](
        flat[:even].view(torch.int32), out[:even].view(torch.int32), n // 2, INF=inf, BLOCK=1024
    )
    if n > even:
        half_kernel[(1,)](flat, out, even, n, BLOCK=1)
    return out.view(x.shape)
