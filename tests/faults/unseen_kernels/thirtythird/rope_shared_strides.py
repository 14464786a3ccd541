"""Takes the strides of cos for sin too, as both come from one table.
Wrong when cos and sin have different layouts, as one contiguous and one transposed or sliced.

op: rope
status: failed
cause: strides of sin
"""
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(x, cos, sin, out, heads, seq, half, xb, xh, xs, xd, ss, sd,
            BS: tl.constexpr, BD: tl.constexpr):
    head = tl.program_id(0).to(tl.int64)
    s = (tl.program_id(1) * BS + tl.arange(0, BS)).to(tl.int64)
    d = tl.arange(0, BD).to(tl.int64)
    ok = (s < seq)[:, None] & (d < half)[None, :]
    table = s[:, None] * ss + d[None, :] * sd
    c = tl.load(cos + table, mask=ok, other=0.0).to(tl.float32)
    n = tl.load(sin + table, mask=ok, other=0.0).to(tl.float32)
    src = x + head // heads * xb + head % heads * xh + s[:, None] * xs + d[None, :] * xd
    a = tl.load(src, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(src + half * xd, mask=ok, other=0.0).to(tl.float32)
    to = out + head * seq * 2 * half + s[:, None] * 2 * half + d[None, :]
    tl.store(to, (a * c - b * n).to(out.dtype.element_ty), mask=ok)
    tl.store(to + half, (b * c + a * n).to(out.dtype.element_ty), mask=ok)


def triton_rope(x, cos, sin):
    batch, heads, seq, dim = x.shape
    half = dim // 2
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        grid = batch * heads, triton.cdiv(seq, 32)
        _kernel[grid](x, cos, sin, out, heads, seq, half, *x.stride(), *cos.stride(),
                      BS=32, BD=triton.next_power_of_2(half))
    return out
