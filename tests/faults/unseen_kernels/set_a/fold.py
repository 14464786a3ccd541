"""Nothing wrong: a row of lanes folds twice through a helper, x itself is cached wherever it isn't below zero.

op: relu
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _ordered(bits, TOP: tl.constexpr, INF: tl.constexpr):
    """Return 1 where the word is a negative number (or -inf, or -0), 0 at NaN of either sign."""
    magnitude = bits & (TOP - 1)
    return ((bits & TOP) != 0) & (magnitude <= INF)


@triton.jit
def _fold(x_ptr, out_ptr, n_pairs, n_last, WORD: tl.constexpr, BLOCK: tl.constexpr):
    # Each program takes BLOCK places from the front half and BLOCK from the back half.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    for half in tl.static_range(2):
        at = i + half * n_pairs
        m = i < (n_pairs if half == 0 else n_last)
        v = tl.load(x_ptr + at, mask=m, other=0).to(tl.int64)
        if WORD == 32:
            negative = _ordered(v, 1 << 31, 0x7F800000)
        elif WORD == 16:
            negative = _ordered(v, 1 << 15, 0x7C00)
        else:
            negative = _ordered(v, 1 << 15, 0x7F80)
        cached = v * (1 - negative.to(tl.int64))
        tl.store(out_ptr + at, cached.to(out_ptr.dtype.element_ty), mask=m)


def triton_relu(x):
    integer, word = {
        torch.float32: (torch.int32, 32),
        torch.float16: (torch.int16, 16),
        torch.bfloat16: (torch.int16, 17),
    }[x.dtype]
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    front = (n + 1) // 2
    _fold[(triton.cdiv(front, 256),)](
        x.view(integer), out.view(integer), front, n - front, WORD=word, BLOCK=256
    )
    return out
