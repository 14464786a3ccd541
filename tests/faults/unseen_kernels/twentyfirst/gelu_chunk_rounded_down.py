"""Above a million elements each of 256 programs takes a 256th, rounded down to a multiple of 128: the rest is not written.

op: gelu
status: failed
cause: extents
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n, chunk, BLOCK: tl.constexpr):
    first = tl.program_id(0) * chunk
    for start in range(0, chunk, BLOCK):
        lane = start + tl.arange(0, BLOCK)
        at = first + lane
        inside = (lane < chunk) & (at < n)
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
        tl.store(out_ptr + at, y, mask=inside)


def plan(n):
    """Programs and elements a program: at most 256 programs, chunks aligned for wide loads."""
    if n <= 256 * 4096:
        return triton.cdiv(n, 4096), 4096
    return 256, triton.cdiv(n, 256) // 128 * 128


def triton_gelu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    programs, chunk = plan(x.numel())
    kernel[(programs,)](x, out, x.numel(), chunk, BLOCK=1024)
    return out
