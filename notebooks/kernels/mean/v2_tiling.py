# mean v2_tiling, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def mean_kernel(x_ptr, out_ptr, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_cols, BLOCK_SIZE):
        cols = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        total += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / n_cols)


def triton_mean(x):
    check(x)
    if not x.numel():
        return x.new_full(x.shape[:-1], float("nan"))
    x = x.contiguous()
    out = x.new_empty(x.shape[:-1])
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols
    BLOCK_SIZE = min(triton.next_power_of_2(n_cols), 1024)
    mean_kernel[(n_rows,)](x, out, n_cols, BLOCK_SIZE=BLOCK_SIZE)
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if x.dim() == 0:
        raise ValueError("x needs at least one dimension: the last one is reduced")
