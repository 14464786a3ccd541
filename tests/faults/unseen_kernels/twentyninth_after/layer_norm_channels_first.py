"""Right: x permuted from channels first (a transposed or permuted view) is normalized where it lies, the output has the same strides, the batch may be expanded.

op: layer_norm
status: passed
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, places, m, x_batch, x_col, x_place, o_batch, o_col, o_place, eps,
    PLACES: tl.constexpr, COLS: tl.constexpr,
):
    blocks = tl.cdiv(places, PLACES)
    place = tl.program_id(0) % blocks * PLACES + tl.arange(0, PLACES)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    inside = place < places
    cols = tl.arange(0, COLS)
    x_ptr += batch * x_batch + place[None, :].to(tl.int64) * x_place
    out_ptr += batch * o_batch + place[None, :].to(tl.int64) * o_place
    total = tl.zeros((PLACES,), tl.float32)
    for start in range(0, m, COLS):
        c = (start + cols).to(tl.int64)[:, None]
        x = tl.load(x_ptr + c * x_col, mask=inside[None, :] & (c < m), other=0.0).to(tl.float32)
        total += tl.sum(x, axis=0)
    mean = total / m
    square = tl.zeros((PLACES,), tl.float32)
    for start in range(0, m, COLS):
        c = (start + cols).to(tl.int64)[:, None]
        mask = inside[None, :] & (c < m)
        x = tl.load(x_ptr + c * x_col, mask=mask, other=0.0).to(tl.float32)
        d = tl.where(mask, x - mean[None, :], 0.0)
        square += tl.sum(d * d, axis=0)
    scale = 1.0 / tl.sqrt(square / m + eps)
    for start in range(0, m, COLS):
        c = (start + cols).to(tl.int64)[:, None]
        mask = inside[None, :] & (c < m)
        x = tl.load(x_ptr + c * x_col, mask=mask, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + c, mask=c < m, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + c, mask=c < m, other=0.0).to(tl.float32)
        y = (x - mean[None, :]) * scale[None, :] * w + b
        tl.store(out_ptr + c * o_col, y.to(out_ptr.dtype.element_ty), mask=mask)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    shape, m = x.shape, x.shape[-1]
    if not x.numel():
        return torch.empty_like(x)
    if x.dim() == 4 and x.stride(1) == x.shape[2] * x.stride(2):
        x = x.flatten(1, 2)  # the plane: a view
    if x.dim() != 3 or x.stride(1) != 1 or x.stride(2) < x.shape[1]:
        x = x.contiguous().view(1, -1, m)  # rows side by side: the same kernel with other strides
        out = torch.empty_like(x)
    else:
        batch, places, _ = x.shape
        out = torch.empty((batch, m, places), dtype=x.dtype, device=x.device).transpose(1, 2)
    batch, places, _ = x.shape
    if x.stride(1) == 1:
        PLACES, COLS = 64, 16
    else:
        PLACES, COLS = 4, min(256, triton.next_power_of_2(m))
    kernel[(triton.cdiv(places, PLACES) * batch,)](
        x, weight.contiguous(), bias.contiguous(), out, places, m, x.stride(0), x.stride(2), x.stride(1),
        out.stride(0), out.stride(2), out.stride(1), eps, PLACES=PLACES, COLS=COLS,
    )
    return out.view(shape)
