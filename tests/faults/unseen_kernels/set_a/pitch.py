"""Rows are found by one stride, that of the second last dimension, though the batches of a sliced tensor lie further apart.

op: rms_norm
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _rms_norm(
    x_ptr, w_ptr, out_ptr, n_rows, n_cols, pitch, eps, BLOCK: tl.constexpr, ONE: tl.constexpr
):
    lane = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        x_row = x_ptr + (lane.to(tl.int64) * 0 + row) * pitch
        out_row = out_ptr + (lane.to(tl.int64) * 0 + row) * n_cols
        if ONE:
            m = lane < n_cols
            x = tl.load(x_row + lane, mask=m, other=0.0).to(tl.float32)
            scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
            w = tl.load(w_ptr + lane, mask=m, other=0.0).to(tl.float32)
            tl.store(out_row + lane, x * scale * w, mask=m)
        else:
            squares = tl.zeros((BLOCK,), tl.float32)
            for start in range(0, n_cols, BLOCK):
                col = start + lane
                x = tl.load(x_row + col, mask=col < n_cols, other=0.0).to(tl.float32)
                squares += x * x
            scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)
            for start in range(0, n_cols, BLOCK):
                col = start + lane
                m = col < n_cols
                x = tl.load(x_row + col, mask=m, other=0.0).to(tl.float32)
                w = tl.load(w_ptr + col, mask=m, other=0.0).to(tl.float32)
                tl.store(out_row + col, x * scale * w, mask=m)


def triton_rms_norm(x, weight, eps=1e-5):
    n_cols = x.shape[-1]
    # Padded rows are read where they are; anything else is packed first.
    nested = all(x.stride(d) >= x.shape[d + 1] * x.stride(d + 1) for d in range(x.dim() - 1))
    if x.stride(-1) != 1 or not nested:
        x = x.contiguous()
    pitch = x.stride(-2) if x.dim() > 1 else n_cols
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows = x.numel() // n_cols
    block = min(1024, triton.next_power_of_2(n_cols))
    _rms_norm[(min(n_rows, 1056),)](
        x, weight.contiguous(), out, n_rows, n_cols, pitch, eps, BLOCK=block, ONE=n_cols <= block
    )
    return out
