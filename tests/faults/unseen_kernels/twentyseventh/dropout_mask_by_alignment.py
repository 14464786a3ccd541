"""Aligned and unaligned data take their random numbers in another order: one seed has two masks.

op: dropout
status: failed
cause: seed
"""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["seed", "limit"])
def dropout_kernel(
    x_ptr, out_ptr, n_elements, seed, limit, scale, WIDE: tl.constexpr, BLOCK: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    lanes = tl.arange(0, BLOCK)
    if WIDE:
        # Element 4 i + j gets the j-th number of call i: a thread loads what it has numbers for.
        fours = tl.program_id(0) * (BLOCK // 4) + tl.arange(0, BLOCK // 4)
        r0, r1, r2, r3 = tl.randint4x(seed, fours)
        random = tl.reshape(tl.join(tl.join(r0, r2), tl.join(r1, r3)), (BLOCK,))
    else:
        random = tl.randint(seed, tl.program_id(0) * BLOCK + lanes)
    keep = (random & 0x7FFFFFFF) >= limit
    mask = lanes < n_elements - start
    x = tl.load(x_ptr + start + lanes, mask=mask).to(tl.float32)
    tl.store(out_ptr + start + lanes, tl.where(keep, x * scale, 0.0), mask=mask)


def triton_dropout(x, p=0.5, seed=0):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    limit = min(round(p * 2**31), 2**31 - 1)
    # Four neighbours a thread pay only where they are one load of 16 bytes (8 for halves).
    wide = x.data_ptr() % (4 * x.element_size()) == 0
    if n_elements:
        dropout_kernel[(triton.cdiv(n_elements, 1024),)](
            x, out, n_elements, seed, limit, 1.0 / (1.0 - p), WIDE=wide, BLOCK=1024
        )
    return out
