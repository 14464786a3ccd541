"""Half types are read in pairs and the row's stride halved: wrong for a slice whose row stride is odd, in a half type.

op: mean
status: failed
cause: combination
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, row_stride, m, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, m, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * row_stride + cols, mask=cols < m, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / m)


@triton.jit
def pair_kernel(x_ptr, out_ptr, row_words, words, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    word_ptr = x_ptr.to(tl.pointer_type(tl.int32))
    half: tl.constexpr = x_ptr.dtype.element_ty
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, words, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        word = tl.load(word_ptr + row * row_words + cols, mask=cols < words, other=0)
        low = word.to(tl.int16).to(half, bitcast=True)
        high = (word >> 16).to(tl.int16).to(half, bitcast=True)
        acc += low.to(tl.float32) + high.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / (2 * words))


def triton_mean(x):
    m = x.shape[-1]
    rows = x.reshape(-1, m)
    if rows.stride(1) != 1:
        rows = rows.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    grid = (rows.shape[0],)
    if x.element_size() == 2 and m % 2 == 0 and rows.data_ptr() % 4 == 0:
        pair_kernel[grid](rows, out, rows.stride(0) // 2, m // 2, BLOCK=512)
    else:
        kernel[grid](rows, out, rows.stride(0), m, BLOCK=1024)
    return out
