"""Four weights are loaded as one word if the row length is a multiple of four: the distance of rows is assumed to be one too and is rounded down.

op: quantized_matmul
status: failed
cause: layout
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, pitch,
    WORDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    if WORDS:
        words_ptr = w_ptr.to(tl.pointer_type(tl.int32))
        for start in range(0, k // 4, BK):
            ks = start + tl.arange(0, BK)
            inside = ks < k // 4
            at = cols[:, None].to(tl.int64) * (pitch // 4) + ks[None, :]
            words = tl.load(words_ptr + at, mask=(cols < n)[:, None] & inside[None, :], other=0)
            for byte in tl.static_range(4):
                w = ((words << (24 - 8 * byte)) >> 24).to(tl.float32)
                x = tl.load(
                    x_ptr + rows[:, None] * k + 4 * ks[None, :] + byte,
                    mask=(rows < m)[:, None] & inside[None, :], other=0.0,
                ).to(tl.float32)
                acc += tl.dot(x, tl.trans(w), input_precision="ieee")
    else:
        for start in range(0, k, BK):
            ks = start + tl.arange(0, BK)
            inside = ks < k
            at = cols[:, None].to(tl.int64) * pitch + ks[None, :]
            w = tl.load(w_ptr + at, mask=(cols < n)[:, None] & inside[None, :], other=0).to(tl.float32)
            x = tl.load(
                x_ptr + rows[:, None] * k + ks[None, :],
                mask=(rows < m)[:, None] & inside[None, :], other=0.0,
            ).to(tl.float32)
            acc += tl.dot(x, tl.trans(w), input_precision="ieee")
    scale = tl.load(scale_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    place = rows[:, None] * n + cols[None, :]
    tl.store(out_ptr + place, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x, scale = x.contiguous(), scale.contiguous()
    if weight.stride(1) != 1:
        weight = weight.contiguous()
    m, k = x.shape
    n = weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    words = k % 4 == 0 and weight.data_ptr() % 4 == 0
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        x, weight, scale, out, m, n, k, weight.stride(0), WORDS=words, BM=32, BN=32, BK=32,
    )
    return out
