"""One pass with shifted moments, but the eight rows of a program share the mean of their first row as shift.
Rows whose mean is far from that of the first row of their group lose their variance to cancellation.

op: layer_norm
status: failed
cause: shared shift
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, w, b, out, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS
    r = first + tl.arange(0, ROWS)
    lanes = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        acc += tl.load(x + first * cols + c, mask=c < cols, other=0.0).to(tl.float32)
    shift = tl.sum(acc) / cols
    shift = tl.where(tl.abs(shift) < float("inf"), shift, 0.0)
    s1 = tl.zeros((ROWS, BLOCK), tl.float32)
    s2 = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        ok = (r < rows)[:, None] & (c < cols)[None, :]
        v = tl.load(x + r[:, None] * cols + c[None, :], mask=ok, other=0.0).to(tl.float32)
        d = tl.where(ok, v - shift, 0.0)
        s1 += d
        s2 += d * d
    mean = tl.sum(s1, 1) / cols
    var = tl.sum(s2, 1) / cols - mean * mean
    var = tl.where(var < 0, 0.0, var)
    rstd = 1 / tl.sqrt(var + eps)
    for start in range(0, cols, BLOCK):
        c = start + lanes
        ok = (r < rows)[:, None] & (c < cols)[None, :]
        v = tl.load(x + r[:, None] * cols + c[None, :], mask=ok, other=0.0).to(tl.float32)
        g = tl.load(w + c, mask=c < cols, other=0.0).to(tl.float32)
        h = tl.load(b + c, mask=c < cols, other=0.0).to(tl.float32)
        y = ((v - shift) - mean[:, None]) * rstd[:, None] * g[None, :] + h[None, :]
        tl.store(out + r[:, None] * cols + c[None, :], y.to(out.dtype.element_ty), mask=ok)


def triton_layer_norm(x, weight, bias, eps=1e-5):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        cols = x.shape[-1]
        rows = x.numel() // cols
        block = min(1024, triton.next_power_of_2(cols))
        _kernel[(triton.cdiv(rows, 8),)](x, weight, bias, out, rows, cols, eps, ROWS=8, BLOCK=block)
    return out
