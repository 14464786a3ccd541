"""With y transposed the grid's axes are exchanged for wide matrices but the kernel's are not: columns stay unwritten.

op: vector_add
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


@triton.jit
def tile_kernel(x_ptr, y_ptr, out_ptr, n_rows, n_cols, xr, yc, alpha, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * xr + cols, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + rows + cols * yc, mask=mask).to(tl.float32)
    tl.store(out_ptr + rows * n_cols + cols, x + alpha * y, mask=mask)


def triton_vector_add(x, y, alpha=1.0):
    if x.dim() == 2 and min(x.shape) > 1 and x.stride(1) == 1 and y.stride(0) == 1:
        n_rows, n_cols = x.shape
        out = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
        tiles = triton.cdiv(n_rows, 32), triton.cdiv(n_cols, 32)
        # The y axis of a grid ends at 65,535: the longer side goes to x.
        grid = max(tiles), min(tiles)
        tile_kernel[grid](x, y, out, n_rows, n_cols, x.stride(0), y.stride(1), alpha, TILE=32)
        return out
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    flat_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, alpha, BLOCK=1024)
    return out
