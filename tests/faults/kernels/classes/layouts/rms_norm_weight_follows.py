"""The weight is read as if its elements lay one after the other.

op: rms_norm
status: failed
cause: wrong_stride
round: second
"""

import torch
import triton
import triton.language as tl


@triton.heuristics({"ROWS": lambda a: 4 if a["n_cols"] < 512 else 1})
@triton.jit
def kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    n_rows,
    n_cols,
    row_stride,
    col_stride,
    eps,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    places = rows.to(tl.int64)[:, None] * row_stride + cols[None, :] * col_stride
    x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    out = x * scale[:, None] * w[None, :]
    tl.store(out_ptr + rows.to(tl.int64)[:, None] * n_cols + cols[None, :], out, mask=inside)


def triton_rms_norm(x, weight, eps=1e-5):
    n_cols = x.shape[-1]
    flat = x.reshape(-1, n_cols)
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows = flat.shape[0]
    kernel[lambda meta: (triton.cdiv(n_rows, meta["ROWS"]),)](
        flat,
        weight,
        out,
        n_rows,
        n_cols,
        flat.stride(0),
        flat.stride(1),
        eps,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return out
