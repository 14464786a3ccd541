# relu v4_optimized, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < tl.minimum(n_elements - start, BLOCK_SIZE).to(tl.int32)
    x = tl.load(x_ptr + start + offsets, mask=mask)
    tl.store(out_ptr + start + offsets, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=mask)


def block_and_warps(n_elements, element_size):
    if n_elements <= 2**18 or (n_elements > 2**22 and element_size == 4):
        return 1024, 4
    return 4096, 8 if element_size == 4 else 4


def triton_relu(x):
    check(x)
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        BLOCK_SIZE, num_warps = block_and_warps(n_elements, x.element_size())
        relu_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](
            x, out, n_elements, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps
        )
    return out


def check(x):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
