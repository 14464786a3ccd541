"""float32 and float16 are compared as signed integers, where all with a sign are below 0: a NaN with a sign becomes 0.

op: relu
status: failed
cause: representation
"""

import torch
import triton
import triton.language as tl

INTEGERS = {torch.float32: torch.int32, torch.float16: torch.int16}


@triton.jit
def relu_kernel(
    x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr, AS_INTEGERS: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offsets = start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    if AS_INTEGERS:
        # One integer maximum: no question of what the float maximum makes of NaN. -0.0 is the
        # least integer and becomes 0.0; NaN is above infinity and stays.
        x = tl.maximum(x, 0)
    else:  # bfloat16, two in a register
        x = tl.where(x < 0.0, 0.0, x)
    tl.store(out_ptr + offsets, x, mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        integers = INTEGERS.get(x.dtype)
        BLOCK_SIZE = 128 * 16 // x.element_size()
        relu_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](
            x.view(integers or x.dtype), out.view(integers or x.dtype), n_elements,
            BLOCK_SIZE=BLOCK_SIZE, AS_INTEGERS=integers is not None,
        )
    return out
