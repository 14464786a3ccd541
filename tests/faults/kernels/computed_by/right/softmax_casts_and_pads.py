"""torch converts, pads and cuts; Triton computes.

op: softmax
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_row_stride, out_row_stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + cols, out, mask=mask)


def launch(rows, out):
    block = triton.next_power_of_2(rows.shape[-1])
    softmax_kernel[(rows.shape[0],)](
        rows, out, rows.stride(0), out.stride(0), rows.shape[-1], BLOCK_SIZE=block
    )


def triton_softmax(x):
    rows = x.reshape(-1, x.shape[-1]).float().contiguous()
    n_cols = rows.shape[-1]
    width = triton.next_power_of_2(n_cols)
    padded = torch.nn.functional.pad(rows, (0, width - n_cols), value=-float("inf"))
    out = torch.zeros_like(padded)
    launch(padded, out)
    return out[:, :n_cols].to(x.dtype).reshape(x.shape).clone()
