"""The index type follows the number of elements, not how far apart they lie: rows 2^31 elements away are misread.

op: rms_norm
status: failed
cause: index_type
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, weight_ptr, out_ptr, n_cols, eps, stride_row, stride_col, stride_weight,
    INDEX: tl.constexpr, BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(INDEX)
    x_ptr += row * stride_row
    out_ptr += row * n_cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols.to(INDEX) * stride_col, mask=cols < n_cols, other=0.0).to(tl.float32)
        total += x * x
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n_cols + eps)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols.to(INDEX) * stride_col, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols.to(INDEX) * stride_weight, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + cols, x * scale * weight, mask=mask)


def triton_rms_norm(x, weight, eps=1e-5):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    n_cols = x.shape[-1]
    rows = x.reshape(-1, n_cols)  # a view wherever one stride is enough: slices are read in place
    # Half the registers for offsets, as long as they fit.
    index = tl.int64 if x.numel() >= 2**31 else tl.int32
    kernel[(rows.shape[0],)](
        rows, weight, out, n_cols, float(eps), *rows.stride(), weight.stride(0),
        INDEX=index, BLOCK=min(1024, triton.next_power_of_2(n_cols)),
    )
    return out
