# matmul v5_limbs, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def grouped(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """The tile of a program: groups of GROUP tile rows, walked column by column."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    in_group = GROUP * tl.cdiv(N, BLOCK_N)
    first = (pid // in_group) * GROUP
    height = min(tiles_m - first, GROUP)
    return first + (pid % in_group) % height, (pid % in_group) // height


@triton.jit
def store(acc, out_desc, out_ptr, tile_m, tile_n, M, N,
          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, DESCRIBED: tl.constexpr):
    """A tile of the result: in two halves through the copy engine, or masked."""
    if DESCRIBED:
        halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        out_desc.store([tile_m * BLOCK_M, tile_n * BLOCK_N], left.to(out_desc.dtype))
        out_desc.store(
            [tile_m * BLOCK_M, tile_n * BLOCK_N + BLOCK_N // 2], right.to(out_desc.dtype)
        )
    else:
        rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
        cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        mask = (rows < M)[:, None] & (cols < N)[None, :]
        tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc, mask=mask)


@triton.jit(do_not_specialize=["M", "N", "K"])
def tile_kernel(
    a_desc, b_desc, out_desc, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """One tile a program."""
    tile_m, tile_n = grouped(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = a_desc.load([tile_m * BLOCK_M, start])
        b = b_desc.load([start, tile_n * BLOCK_N])
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    store(acc, out_desc, out_ptr, tile_m, tile_n, M, N, BLOCK_M, BLOCK_N, DESCRIBED)


@triton.jit(do_not_specialize=["M", "N", "K"])
def persistent_kernel(
    a_desc, b_desc, out_desc, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
    DESCRIBED: tl.constexpr,
):
    """A program a multiprocessor, tile after tile: while one is stored, the next is loaded."""
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tile_m, tile_n = grouped(tile, M, N, BLOCK_M, BLOCK_N, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for start in range(0, K, BLOCK_K):
            a = a_desc.load([tile_m * BLOCK_M, start])
            b = b_desc.load([start, tile_n * BLOCK_N])
            acc = tl.dot(a, b, acc)
        store(acc, out_desc, out_ptr, tile_m, tile_n, M, N, BLOCK_M, BLOCK_N, DESCRIBED)


@triton.jit
def power_of_two(biased):
    """2 ** (biased - 127), from the bits of its exponent."""
    return (biased << 23).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["part"])
def peaks_kernel(
    x_ptr, peaks_ptr, n_lines, K, stride_l, stride_k, part, LINES: tl.constexpr, KS: tl.constexpr
):
    """The largest |x| of each line's parts: peaks [parts, lines]."""
    lines = tl.program_id(0) * LINES + tl.arange(0, LINES).to(tl.int64)
    first = tl.program_id(1) * part
    peaks = tl.zeros((LINES,), dtype=tl.float32)
    for start in range(first, tl.minimum(first + part, K), KS):
        ks = start + tl.arange(0, KS).to(tl.int64)
        inside = (lines < n_lines)[:, None] & (ks < K)[None, :]
        x_ptrs = x_ptr + lines[:, None] * stride_l + ks[None, :] * stride_k
        peaks = tl.maximum(peaks, tl.max(tl.abs(tl.load(x_ptrs, mask=inside, other=0.0)), axis=1))
    tl.store(peaks_ptr + tl.program_id(1) * n_lines + lines, peaks, mask=lines < n_lines)


@triton.jit(do_not_specialize=["n_parts"])
def split_kernel(
    x_ptr, peaks_ptr, high_ptr, low_ptr, scales_ptr, n_lines, K, n_parts,
    stride_l, stride_k, limb_l, limb_k,
    PARTS: tl.constexpr, LINES: tl.constexpr, KS: tl.constexpr,
):
    """x [lines, K] as two limbs of float16, and what each line's sums have to be multiplied by.

    A limb has 11 bits, two have 22 of float32's 24 and a sign between them. Its exponent has
    only 5 bits: each line is multiplied by a power of two first, so that its largest element lies
    just under 2**15. What is 2**40 times smaller than that is lost.
    """
    lines = tl.program_id(0) * LINES + tl.arange(0, LINES).to(tl.int64)
    ks = tl.program_id(1) * KS + tl.arange(0, KS).to(tl.int64)
    parts = tl.arange(0, PARTS)
    peaks = tl.load(
        peaks_ptr + parts[:, None] * n_lines + lines[None, :],
        mask=(parts < n_parts)[:, None] & (lines < n_lines)[None, :],
        other=0.0,
    )
    exponents = tl.maximum(tl.max(peaks, axis=0).to(tl.int32, bitcast=True) >> 23, 15)
    inside = (lines < n_lines)[:, None] & (ks < K)[None, :]
    x = tl.load(x_ptr + lines[:, None] * stride_l + ks[None, :] * stride_k, mask=inside, other=0.0)
    x *= power_of_two(268 - exponents)[:, None]
    high = x.to(tl.float16)
    low = (x - high.to(tl.float32)).to(tl.float16)
    offsets = lines[:, None] * limb_l + ks[None, :] * limb_k
    tl.store(high_ptr + offsets, high, mask=inside)
    tl.store(low_ptr + offsets, low, mask=inside)
    if tl.program_id(1) == 0:
        tl.store(scales_ptr + lines, power_of_two(exponents - 14), mask=lines < n_lines)


@triton.jit(do_not_specialize=["M", "K"])
def limbs_kernel(
    a1_desc, a2_desc, b1_desc, b2_desc, a_scales_ptr, b_scales_ptr, out_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    tile_m, tile_n = grouped(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a1 = a1_desc.load([tile_m * BLOCK_M, start])
        a2 = a2_desc.load([tile_m * BLOCK_M, start])
        b1 = b1_desc.load([start, tile_n * BLOCK_N])
        b2 = b2_desc.load([start, tile_n * BLOCK_N])
        product = tl.dot(a2, b1)  # the small ones first; a2 @ b2 is too small to matter
        product = tl.dot(a1, b2, product)
        product = tl.dot(a1, b1, product)
        # The sum over k is made here, in float32: tensor cores round theirs towards zero.
        acc += product
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    a_scales = tl.load(a_scales_ptr + rows, mask=rows < M, other=0.0)
    b_scales = tl.load(b_scales_ptr + cols, mask=cols < N, other=0.0)
    acc = acc * a_scales[:, None] * b_scales[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None].to(tl.int64) * N + cols[None, :], acc, mask=mask)


@triton.jit(do_not_specialize=["R", "C"])
def pack_kernel(
    x_ptr, out_ptr, R, C, stride_r, stride_c, stride_o, ROWS: tl.constexpr, COLS: tl.constexpr
):
    """Copies x [R, C] of any strides into rows of stride_o elements."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS).to(tl.int64)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS).to(tl.int64)
    mask = (rows < R)[:, None] & (cols < C)[None, :]
    x = tl.load(x_ptr + rows[:, None] * stride_r + cols[None, :] * stride_c, mask=mask)
    tl.store(out_ptr + rows[:, None] * stride_o + cols[None, :], x, mask=mask)


def in_whole_16_bytes(x):
    return x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def described(x, block):
    """A descriptor of x [R, C], or of a copy with rows that a descriptor can describe."""
    R, C = x.shape
    if not in_whole_16_bytes(x) or x.stride(0) < C:
        packed = torch.empty((R, triton.cdiv(C, 8) * 8), dtype=x.dtype, device=x.device)[:, :C]
        pack_kernel[(triton.cdiv(R, 32), triton.cdiv(C, 128))](
            x, packed, R, C, *x.stride(), packed.stride(0), ROWS=32, COLS=128
        )
        x = packed
    return TensorDescriptor(x, list(x.shape), [x.stride(0), 1], block)


def multiply(kernel, programs, a, b, out, blocks, num_warps, num_stages):
    (M, K), N = a.shape, b.shape[1]
    BLOCK_M, BLOCK_N, BLOCK_K = blocks
    DESCRIBED = in_whole_16_bytes(out)
    out_desc = described(out, [BLOCK_M, BLOCK_N // 2]) if DESCRIBED else None
    kernel[(programs,)](
        described(a, [BLOCK_M, BLOCK_K]), described(b, [BLOCK_K, BLOCK_N]), out_desc, out, M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP=8, DESCRIBED=DESCRIBED,
        num_warps=num_warps, num_stages=num_stages,
    )


def tiles(M, N, blocks):
    return triton.cdiv(M, blocks[0]) * triton.cdiv(N, blocks[1])


def multiprocessors(x):
    return torch.cuda.get_device_properties(x.device).multi_processor_count


def multiply_in_one_kernel(a, b, out):
    """The tile by how many of it there are: at least one for two multiprocessors."""
    M, N = out.shape
    enough = multiprocessors(a) // 2
    wide = a.dtype != torch.float32
    large, medium, small = ((128, 256, 64), (64, 128, 128), (16, 64, 256)) if wide else (
        (128, 64, 32), (128, 64, 32), (32, 32, 32))
    if wide and tiles(M, N, large) >= 2 * enough:
        programs = min(tiles(M, N, large), multiprocessors(a))
        multiply(persistent_kernel, programs, a, b, out, large, num_warps=8, num_stages=4)
    elif tiles(M, N, medium) >= enough:
        warps = 4 if wide else 8
        multiply(tile_kernel, tiles(M, N, medium), a, b, out, medium, num_warps=warps, num_stages=4)
    else:
        stages = 2 if wide else 4  # wide: the whole of k = 256 is one step
        multiply(tile_kernel, tiles(M, N, small), a, b, out, small, num_warps=4, num_stages=stages)


def split(x, limbs):
    """Writes the limbs of x [lines, K] into limbs [2, lines, K]; returns a scale for each line."""
    lines, K = x.shape
    LINES, KS, PARTS = 64, 64, 32
    part = triton.cdiv(triton.cdiv(K, PARTS), KS) * KS
    parts, blocks = triton.cdiv(K, part), triton.cdiv(lines, LINES)
    peaks = torch.empty((parts, lines), dtype=torch.float32, device=x.device)
    scales = torch.empty((lines,), dtype=torch.float32, device=x.device)
    peaks_kernel[(blocks, parts)](x, peaks, lines, K, *x.stride(), part, LINES=LINES, KS=KS)
    split_kernel[(blocks, triton.cdiv(K, 128))](
        x, peaks, limbs[0], limbs[1], scales, lines, K, parts, *x.stride(), *limbs.stride()[1:],
        PARTS=PARTS, LINES=LINES, KS=128, num_warps=8,
    )
    return scales


def room_for_limbs(x):
    """[2, R, C] of float16, in rows that a descriptor can describe."""
    R, C = x.shape
    row = triton.cdiv(C, 8) * 8
    return torch.empty((2, R, row), dtype=torch.float16, device=x.device)[:, :, :C]


def multiply_in_limbs(a, b, out, blocks, num_warps, num_stages):
    (M, K), N = a.shape, b.shape[1]
    BLOCK_M, BLOCK_N, BLOCK_K = blocks
    a_limbs, b_limbs = room_for_limbs(a), room_for_limbs(b)
    scales = split(a, a_limbs), split(b.T, b_limbs.transpose(1, 2))
    limbs_kernel[(tiles(M, N, blocks),)](
        *(described(x, [BLOCK_M, BLOCK_K]) for x in a_limbs),
        *(described(x, [BLOCK_K, BLOCK_N]) for x in b_limbs),
        *scales, out, M, N, K,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP=8,
        num_warps=num_warps, num_stages=num_stages,
    )


def check(a, b):
    for name, x in (("a", a), ("b", b)):
        if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
            kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a tensor of float32, float16 or bfloat16, not {kind}")
        if not x.is_cuda:
            raise ValueError(f"{name} is on {x.device}: move it to the GPU")
        if x.dim() != 2:
            raise ValueError(f"{name} must have two dimensions, not {tuple(x.shape)}")
    if a.dtype != b.dtype:
        raise TypeError(f"a is {a.dtype}, b is {b.dtype}: they must be the same")
    if a.device != b.device:
        raise ValueError(f"a is on {a.device}, b on {b.device}: move one")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"a has {a.shape[1]} columns, b {b.shape[0]} rows: they must agree")


def triton_matmul(a, b):
    check(a, b)
    (M, K), N = a.shape, b.shape[1]
    if not (M and N and K):
        return torch.zeros((M, N), dtype=a.dtype, device=a.device)
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if a.dtype != torch.float32 or tiles(M, N, (64, 64)) < multiprocessors(a):
        multiply_in_one_kernel(a, b, out)
    elif tiles(M, N, (128, 128)) < 2 * multiprocessors(a):
        multiply_in_limbs(a, b, out, (64, 64, 64), num_warps=4, num_stages=3)
    else:
        multiply_in_limbs(a, b, out, (128, 128, 64), num_warps=8, num_stages=3)
    return out
