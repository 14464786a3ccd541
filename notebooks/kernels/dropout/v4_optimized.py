# dropout v4_optimized, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit(do_not_specialize=["seed", "limit"])
def dropout_kernel(x_ptr, out_ptr, n_elements, seed, limit, scale, BLOCK_SIZE: tl.constexpr):
    fours = tl.program_id(0) * (BLOCK_SIZE // 4) + tl.arange(0, BLOCK_SIZE // 4)
    r0, r1, r2, r3 = tl.randint4x(seed, fours, n_rounds=7)
    # Element 4 i + j gets the j-th number of call i: joined, they lie as the elements do.
    random = tl.reshape(tl.join(tl.join(r0, r2), tl.join(r1, r3)), (BLOCK_SIZE,))
    keep = (random & 0x7FFFFFFF) >= limit
    start = tl.program_id(0).to(tl.int64) * BLOCK_SIZE
    offsets = tl.arange(0, BLOCK_SIZE)
    mask = offsets < tl.minimum(n_elements - start, BLOCK_SIZE).to(tl.int32)
    x = tl.load(x_ptr + start + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + start + offsets, tl.where(keep, x * scale, 0.0), mask=mask)


def block_and_warps(n_elements, element_size):
    if n_elements <= 2**18:
        return 1024, 4
    if n_elements <= 2**22:
        return 2048, 8
    return (1024, 4) if element_size == 4 else (2048, 2)


def triton_dropout(x, p=0.5, seed=0):
    check(x, p, seed)
    x = x.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    limit = min(round(p * 2**31), 2**31 - 1)  # of 31 random bits; below it, an element is dropped
    scale = 1.0 / (1.0 - p) if p < 1 else 0.0
    if n_elements:
        BLOCK_SIZE, num_warps = block_and_warps(n_elements, x.element_size())
        dropout_kernel[(triton.cdiv(n_elements, BLOCK_SIZE),)](
            x, out, n_elements, seed, limit, scale, BLOCK_SIZE=BLOCK_SIZE, num_warps=num_warps
        )
    return out


def check(x, p, seed):
    if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
        kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
        raise TypeError(f"x must be a tensor of float32, float16 or bfloat16, not {kind}")
    if not x.is_cuda:
        raise ValueError(f"x is on {x.device}: move it to the GPU")
    if not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise ValueError(f"p must be a probability, 0 to 1, not {p!r}")
    if not isinstance(seed, int) or not -(2**63) <= seed < 2**63:
        raise ValueError(f"seed must be an int of at most 64 bits, not {seed!r}")
    if x.numel() >= 2**33:
        raise ValueError(f"x has {x.numel()} elements; the generator's counter has room for 2**33")
