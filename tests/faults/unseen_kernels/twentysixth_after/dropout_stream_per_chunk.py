"""Each chunk of 2,048 elements draws from a stream of its own, with the chunk's number in the lowest bits of the seed: seeds near
each other have the same chunks in their masks, in another order.

op: dropout
status: failed
cause: seed
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed"])
def kernel(x_ptr, out_ptr, n, p, factor, seed, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    chunk = tl.program_id(0).to(tl.int64)
    stream = chunk ^ seed  # another stream for each chunk, whatever the seed
    for start in range(0, CHUNK, 4 * BLOCK):
        drawn = tl.rand4x(stream, start + tl.arange(0, BLOCK))
        for i in tl.static_range(4):
            places = chunk * CHUNK + start + i * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + places, mask=places < n, other=0.0).to(tl.float32)
            tl.store(out_ptr + places, tl.where(drawn[i] >= p, x * factor, 0.0), mask=places < n)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = x.numel()
    if n:
        kernel[(triton.cdiv(n, 2048),)](x, out, n, p, 1.0 / (1.0 - p), seed, CHUNK=2048, BLOCK=256)
    return out
