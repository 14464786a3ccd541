# softmax v2_tiling, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    start_of_row = tl.program_id(0).to(tl.int64) * n_cols
    x_ptr += start_of_row
    out_ptr += start_of_row
    m = -float("inf")
    s = 0.0
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        # While a row is all minus infinity, exp(m - m_new) would be exp(-inf + inf), NaN.
        s = s * tl.where(m == m_new, 1.0, tl.exp(m - m_new)) + tl.sum(
            tl.where(x == -float("inf"), 0.0, tl.exp(x - m_new)), axis=0
        )
        m = m_new
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_ptr + cols, tl.exp(x - m) / s, mask=mask)


def triton_softmax(x):
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        n_cols = x.shape[-1]
        n_rows = x.numel() // n_cols
        BLOCK_SIZE = min(triton.next_power_of_2(n_cols), 1024)
        softmax_kernel[(n_rows,)](x, out, n_cols, BLOCK_SIZE=BLOCK_SIZE)
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if x.dim() == 0:
        raise ValueError("x needs at least one dimension: the last one is reduced")
