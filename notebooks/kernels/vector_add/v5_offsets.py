# vector_add v5_offsets, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def vector_add_kernel(
    x_ptr, y_ptr, out_ptr, alpha, n_elements, BLOCK_SIZE: tl.constexpr, WIDE: tl.constexpr
):
    block = tl.program_id(0)
    if WIDE:
        block = block.to(tl.int64)
    offsets = block * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + offsets, x + alpha * y, mask=mask)


def block_and_warps(n_elements, element_size):
    if n_elements <= 2**18 or (n_elements > 2**22 and element_size == 4):
        return 1024, 4
    if n_elements <= 2**22:
        return (8192, 16) if element_size == 4 else (4096, 8)
    return 4096, 8


def triton_vector_add(x, y, alpha=1.0):
    check(x, y)
    if not isinstance(alpha, (int, float)):
        raise TypeError(f"alpha must be a number, not {type(alpha).__name__}")
    alpha = float(alpha)
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    if n_elements:
        BLOCK_SIZE, num_warps = block_and_warps(n_elements, x.element_size())
        vector_add_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](
            x, y, out, alpha, n_elements,
            BLOCK_SIZE=BLOCK_SIZE, WIDE=n_elements >= 2**31 - BLOCK_SIZE, num_warps=num_warps,
        )
    return out


def check(x, y):
    for name, t in (("x", x), ("y", y)):
        if not isinstance(t, torch.Tensor) or t.dtype not in DTYPES:
            kind = t.dtype if isinstance(t, torch.Tensor) else type(t).__name__
            raise TypeError(f"{name} must be a tensor of float32, float16 or bfloat16, not {kind}")
        if not t.is_cuda:
            raise ValueError(f"{name} is on {t.device}: move it to the GPU")
    if x.dtype != y.dtype:
        raise TypeError(f"x is {x.dtype} and y {y.dtype}: they must be the same")
    if x.shape != y.shape or x.device != y.device:
        raise ValueError(
            f"x is {tuple(x.shape)} on {x.device}, y {tuple(y.shape)} on {y.device}: "
            "they must be the same (nothing is broadcast)"
        )
