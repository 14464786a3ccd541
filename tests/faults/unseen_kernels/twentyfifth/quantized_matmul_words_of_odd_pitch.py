"""Four weights are read as one word; the pitch of the rows is divided by four, though it need not be a multiple of it.

op: quantized_matmul
status: failed
cause: pitch
"""

import torch
import triton
import triton.language as tl


@triton.jit
def words_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, words, x_row, w_row, s_step,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_W: tl.constexpr,
):
    """A word holds the weights 4 i to 4 i + 3; each of them meets its own quarter of x."""
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    word_ptr = w_ptr.to(tl.pointer_type(tl.int32)) + cols.to(tl.int64)[None, :] * w_row
    x_at = x_ptr + rows.to(tl.int64)[:, None] * x_row
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, words, BLOCK_W):
        ws = start + tl.arange(0, BLOCK_W)
        in_w = (ws < words)[:, None] & (cols < n)[None, :]
        in_x = (rows < m)[:, None] & (ws < words)[None, :]
        word = tl.load(word_ptr + ws[:, None], mask=in_w, other=0)
        for j in tl.static_range(4):
            weight = (word << (24 - 8 * j)) >> 24  # arithmetic: it brings the sign along
            x = tl.load(x_at + 4 * ws[None, :] + j, mask=in_x, other=0.0)
            acc = tl.dot(x, weight.to(tl.float32).to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_step, mask=cols < n, other=0.0).to(tl.float32)
    at = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(at, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


@triton.jit
def bytes_kernel(
    x_ptr, w_ptr, scale_ptr, out_ptr, m, n, k, x_row, w_row, w_col, s_step,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_at = x_ptr + rows.to(tl.int64)[:, None] * x_row
    w_at = w_ptr + cols.to(tl.int64)[None, :] * w_row
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        in_w = (ks < k)[:, None] & (cols < n)[None, :]
        in_x = (rows < m)[:, None] & (ks < k)[None, :]
        weight = tl.load(w_at + ks.to(tl.int64)[:, None] * w_col, mask=in_w, other=0)
        x = tl.load(x_at + ks[None, :], mask=in_x, other=0.0)
        acc = tl.dot(x, weight.to(tl.float32).to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + cols * s_step, mask=cols < n, other=0.0).to(tl.float32)
    at = out_ptr + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(at, acc * scale[None, :], mask=(rows < m)[:, None] & (cols < n)[None, :])


def triton_quantized_matmul(x, weight, scale):
    x = x if x.stride(1) == 1 else x.contiguous()
    (m, k), n = x.shape, weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(n, 32), triton.cdiv(m, 16))
    blocks = {"BLOCK_M": 16, "BLOCK_N": 32}
    in_words = k % 4 == 0 and weight.stride(1) == 1 and weight.data_ptr() % 4 == 0
    if in_words:
        words_kernel[grid](
            x, weight, scale, out, m, n, k // 4, x.stride(0), weight.stride(0) // 4,
            scale.stride(0), BLOCK_W=32, **blocks,
        )
    else:
        bytes_kernel[grid](
            x, weight, scale, out, m, n, k, x.stride(0), *weight.stride(), scale.stride(0),
            BLOCK_K=64, **blocks,
        )
    return out
