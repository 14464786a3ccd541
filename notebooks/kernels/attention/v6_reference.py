# attention v6_reference, written by triton_magics. Below these two lines is the notebook's cell,
# byte for byte. An edit made here is kept: it becomes the version's next attempt.
import torch
import triton
import triton.language as tl
from torch.nn import functional as F
from triton.tools.tensor_descriptor import TensorDescriptor

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LOG2_E = 1.4426950408889634
MANY = 3 * 2**15  # queries: tiles for several waves of three programs a multiprocessor


@triton.jit
def row_max(x):
    """Maximum of each row, in two steps: several short chains of comparisons for each lane."""
    if x.shape[0] < 64:  # small tiles have no registers to spare
        return tl.max(x, axis=1)
    parts = tl.reshape(x, (x.shape[0], x.shape[1] // 16, 16))
    return tl.max(tl.max(parts, axis=1), axis=1)


@triton.jit
def row_sum(x):
    """Sum of each row, as row_max."""
    if x.shape[0] < 64:
        return tl.sum(x, axis=1)
    parts = tl.reshape(x, (x.shape[0], x.shape[1] // 16, 16))
    return tl.sum(tl.sum(parts, axis=1), axis=1)


@triton.jit
def lane_sums(x):
    """Sums of every 16th column: those that a lane holds, so that no lane waits for another."""
    return tl.sum(tl.reshape(x, (x.shape[0], x.shape[1] // 16, 16)), axis=1)


@triton.jit
def scores(
    q, k_desc, head, start, seq,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):
    """Of one tile of keys."""
    k = k_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    s = tl.dot(q, k.T, input_precision="tf32x3")
    if MASKED:
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
    return s


@triton.jit
def step(
    q, k_desc, v_desc, head, start, largest, total, acc, seq, scale,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):
    """One tile of keys and values, the largest score so far as the reference."""
    s = scores(q, k_desc, head, start, seq, BLOCK_N, BLOCK_D, MASKED)
    new = tl.maximum(largest, row_max(s) * scale)
    p = tl.exp2(s * scale - new[:, None])
    shrink = tl.exp2(largest - new)
    total = total * shrink + row_sum(p)
    acc = acc * shrink[:, None]
    v = v_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    acc = tl.dot(p.to(v.dtype), v, acc, input_precision="tf32x3")
    return new, total, acc


@triton.jit
def halves(x):
    """The left and the right half of its columns; each lane keeps what it has."""
    return x.reshape([x.shape[0], 2, x.shape[1] // 2]).permute(0, 2, 1).split()


@triton.jit
def fixed_step(
    q, k_desc, half_desc, head, start, reference, total, acc, seq, scale,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):
    """One tile of keys and values; nothing is rescaled, and the second half's exponentials run beside a product."""
    s = scores(q, k_desc, head, start, seq, BLOCK_N, BLOCK_D, MASKED)
    left, right = halves(s)
    HALF: tl.constexpr = BLOCK_N // 2
    v_left = half_desc.load([head, start, 0]).reshape([HALF, BLOCK_D])
    v_right = half_desc.load([head, start + HALF, 0]).reshape([HALF, BLOCK_D])
    p = tl.exp2(left * scale - reference[:, None])
    acc = tl.dot(p.to(v_left.dtype), v_left, acc)
    total += lane_sums(p)
    p = tl.exp2(right * scale - reference[:, None])
    acc = tl.dot(p.to(v_right.dtype), v_right, acc)
    total += lane_sums(p)
    return total, acc


@triton.jit
def attend_tiles(
    q, k_desc, v_desc, head, whole, end, seq, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """The sums and the output before it is divided by them, for any scores."""
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, whole, BLOCK_N):
        largest, total, acc = step(
            q, k_desc, v_desc, head, start, largest, total, acc, seq, scale,
            BLOCK_N, BLOCK_D, False,
        )
    for start in range(whole, end, BLOCK_N):
        largest, total, acc = step(
            q, k_desc, v_desc, head, start, largest, total, acc, seq, scale,
            BLOCK_N, BLOCK_D, True,
        )
    return total, acc


@triton.jit
def attend_from_first(
    q, k_desc, half_desc, head, whole, end, seq, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """The same with the largest score of the first tile as the reference for all tiles."""
    reference = row_max(scores(q, k_desc, head, 0, seq, BLOCK_N, BLOCK_D, True)) * scale
    total = tl.zeros((BLOCK_M, 16), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, whole, BLOCK_N):
        total, acc = fixed_step(
            q, k_desc, half_desc, head, start, reference, total, acc, seq, scale,
            BLOCK_N, BLOCK_D, False,
        )
    for start in range(whole, end, BLOCK_N):
        total, acc = fixed_step(
            q, k_desc, half_desc, head, start, reference, total, acc, seq, scale,
            BLOCK_N, BLOCK_D, True,
        )
    return tl.sum(total, axis=1), acc


@triton.jit(do_not_specialize=["seq"])
def attention_kernel(
    q_desc, k_desc, v_desc, half_desc, out_ptr, seq, dim, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, FIXED: tl.constexpr,
):
    head = tl.program_id(1)
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    q = q_desc.load([head, first, 0]).reshape([BLOCK_M, BLOCK_D])
    whole = seq // BLOCK_N * BLOCK_N  # only the tile after these needs the mask
    end = seq
    if FIXED:
        total, acc = attend_from_first(
            q, k_desc, half_desc, head, whole, end, seq, scale, BLOCK_M, BLOCK_N, BLOCK_D
        )
        finite = (tl.sum(acc * 0.0, axis=1) == 0.0) & (total < 2.0**64)
        if tl.min(finite.to(tl.int32), axis=0) == 0:  # a later score is far above the reference
            total, acc = attend_tiles(
                q, k_desc, v_desc, head, whole, end, seq, scale, BLOCK_M, BLOCK_N, BLOCK_D
            )
    else:
        total, acc = attend_tiles(
            q, k_desc, v_desc, head, whole, end, seq, scale, BLOCK_M, BLOCK_N, BLOCK_D
        )
    ds = tl.arange(0, BLOCK_D)
    out_ptrs = out_ptr + (head.to(tl.int64) * seq + rows[:, None]) * dim + ds[None, :]
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptrs, acc / total[:, None], mask=inside)


def described(x, rows):
    """A descriptor of x as [batch * heads, seq, dim], or of a copy that can be described."""
    batch, heads, seq, dim = x.shape
    if dim % 8:
        x = F.pad(x, (0, -dim % 8))
    x = x.contiguous()
    if x.data_ptr() % 16:
        x = x.clone()
    x = x.view(batch * heads, seq, x.shape[-1])
    block = [1, rows, max(16, triton.next_power_of_2(dim))]
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block)


@triton.jit
def power_of_two(biased):
    """2 ** (biased - 127), from the bits of its exponent."""
    return (biased << 23).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["seq", "n_elements"])
def split_kernel(
    q_ptr, k_ptr, v_ptr, limbs_ptr, q_scale_ptr, scale_ptr, seq, dim, n_elements, scale,
    BLOCK: tl.constexpr, BLOCK_D: tl.constexpr,
):
    """q, k, v as limbs [6, batch * heads, seq, dim], and what each has to be multiplied by.

    A limb has 11 bits, two have float32's 22 to 24. Everything is multiplied by a power of two first, so that the
    largest element lies just under 2**15: a row of q has its own, a tile of k or v one for all.
    """
    which = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    first = tl.program_id(0) * BLOCK
    tile = (head * seq + first) * dim  # 64 bits once a program, 32 for each element
    rows = tl.arange(0, BLOCK)
    ds = tl.arange(0, BLOCK_D)
    inside = (rows < seq - first)[:, None] & (ds < dim)[None, :]
    offsets = rows[:, None] * dim + ds[None, :]
    x_ptr = q_ptr
    if which == 1:
        x_ptr = k_ptr
    if which == 2:
        x_ptr = v_ptr
    x = tl.load(x_ptr + tile + offsets, mask=inside, other=0.0)
    peaks = tl.max(tl.abs(x), axis=1)
    if which > 0:
        peaks = tl.zeros((BLOCK,), dtype=tl.float32) + tl.max(peaks, axis=0)
    exponents = tl.maximum(peaks.to(tl.int32, bitcast=True) >> 23, 15)
    x *= power_of_two(268 - exponents)[:, None]
    high = x.to(tl.float16)
    low = (x - high.to(tl.float32)).to(tl.float16)
    limbs_ptr += 2 * which * n_elements + tile
    tl.store(limbs_ptr + offsets, high, mask=inside)
    tl.store(limbs_ptr + n_elements + offsets, low, mask=inside)
    back = power_of_two(exponents - 14)
    if which == 0:
        tl.store(q_scale_ptr + head * seq + first + rows, back * scale, mask=rows < seq - first)
    else:
        tiles = tl.num_programs(0)
        at = ((which - 1) * tl.num_programs(1) + head) * tiles + tl.program_id(0)
        tl.store(scale_ptr + at, tl.max(back, axis=0))


@triton.jit
def limbs_step(
    q1, q2, q_scale, k1_desc, k2_desc, v1_desc, v2_desc, scale_ptr, head, start, largest, total, acc, seq,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr,
):
    """One tile of keys and values, the small products first."""
    tiles = tl.cdiv(seq, BLOCK_N)
    k1 = k1_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    k2 = k2_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    s = tl.dot(q2, k1.T)
    s = tl.dot(q1, k2.T, s)
    s = tl.dot(q1, k1.T, s)
    if MASKED:
        cols = start + tl.arange(0, BLOCK_N)
        s = tl.where((cols < seq)[None, :], s, -float("inf"))
    scale = q_scale * tl.load(scale_ptr + head * tiles + start // BLOCK_N)
    new = tl.maximum(largest, tl.max(s, axis=1) * scale)
    # p lies between 0 and 2**14, so that its second limb keeps what matters; total has the same factor.
    p = tl.exp2(s * scale[:, None] - (new - 14.0)[:, None])
    shrink = tl.exp2(largest - new)
    total = total * shrink + tl.sum(p, axis=1)
    p1 = p.to(tl.float16)
    p2 = (p - p1.to(tl.float32)).to(tl.float16)
    v1 = v1_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    v2 = v2_desc.load([head, start, 0]).reshape([BLOCK_N, BLOCK_D])
    part = tl.dot(p2, v1)
    part = tl.dot(p1, v2, part)
    part = tl.dot(p1, v1, part)
    v_scale = tl.load(scale_ptr + (tl.num_programs(1) + head) * tiles + start // BLOCK_N)
    # The sum over tiles is made here, in float32: tensor cores round theirs towards zero.
    acc = acc * shrink[:, None] + part * v_scale
    return new, total, acc


@triton.jit(do_not_specialize=["seq"])
def limbs_kernel(
    q1_desc, q2_desc, k1_desc, k2_desc, v1_desc, v2_desc, out_ptr, q_scale_ptr, scale_ptr, seq, dim,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1)
    first = tl.program_id(0) * BLOCK_M
    rows = first + tl.arange(0, BLOCK_M)
    q1 = q1_desc.load([head, first, 0]).reshape([BLOCK_M, BLOCK_D])
    q2 = q2_desc.load([head, first, 0]).reshape([BLOCK_M, BLOCK_D])
    q_scale = tl.load(q_scale_ptr + head.to(tl.int64) * seq + rows, mask=rows < seq, other=1.0)
    largest = tl.full((BLOCK_M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    whole = seq // BLOCK_N * BLOCK_N  # only the tile after these needs the mask
    for start in range(0, whole, BLOCK_N):
        largest, total, acc = limbs_step(
            q1, q2, q_scale, k1_desc, k2_desc, v1_desc, v2_desc, scale_ptr, head, start,
            largest, total, acc, seq, BLOCK_N, BLOCK_D, False,
        )
    for start in range(whole, seq, BLOCK_N):
        largest, total, acc = limbs_step(
            q1, q2, q_scale, k1_desc, k2_desc, v1_desc, v2_desc, scale_ptr, head, start,
            largest, total, acc, seq, BLOCK_N, BLOCK_D, True,
        )
    ds = tl.arange(0, BLOCK_D)
    out_ptrs = out_ptr + (head.to(tl.int64) * seq + rows[:, None]) * dim + ds[None, :]
    inside = (rows < seq)[:, None] & (ds < dim)[None, :]
    tl.store(out_ptrs, acc / total[:, None], mask=inside)


def attend_in_limbs(q, k, v, out, BLOCK_M, BLOCK_N, num_warps, num_stages):
    batch, heads, seq, dim = q.shape
    if dim % 8:
        q, k, v = (F.pad(x, (0, -dim % 8)) for x in (q, k, v))
    q, k, v = (x.contiguous() for x in (q, k, v))
    n_heads, padded, device = batch * heads, q.shape[-1], q.device
    BLOCK_D = max(16, triton.next_power_of_2(padded))
    tiles = triton.cdiv(seq, BLOCK_N)
    limbs = torch.empty((6, n_heads, seq, padded), dtype=torch.float16, device=device)
    q_scale = torch.empty((n_heads, seq), dtype=torch.float32, device=device)
    scales = torch.empty((2, n_heads, tiles), dtype=torch.float32, device=device)
    split_kernel[(tiles, n_heads, 3)](
        q, k, v, limbs, q_scale, scales, seq, padded, q.numel(), dim**-0.5 * LOG2_E,
        BLOCK=BLOCK_N, BLOCK_D=BLOCK_D, num_warps=4,
    )
    blocks = [BLOCK_M, BLOCK_M, BLOCK_N, BLOCK_N, BLOCK_N, BLOCK_N]
    descriptors = [
        TensorDescriptor(x, list(x.shape), list(x.stride()), [1, rows, BLOCK_D])
        for x, rows in zip(limbs, blocks, strict=True)
    ]
    limbs_kernel[(triton.cdiv(seq, BLOCK_M), n_heads)](
        *descriptors, out, q_scale, scales, seq, dim,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=BLOCK_D,
        num_warps=num_warps, num_stages=num_stages,
    )


def check(q, k, v):
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, torch.Tensor) or x.dtype not in DTYPES:
            kind = x.dtype if isinstance(x, torch.Tensor) else type(x).__name__
            raise TypeError(f"{name} must be a tensor of float32, float16 or bfloat16, not {kind}")
        if not x.is_cuda:
            raise ValueError(f"{name} is on {x.device}: move it to the GPU")
        if x.dtype != q.dtype:
            raise TypeError(f"q is {q.dtype}, {name} is {x.dtype}: they must be the same")
        if x.device != q.device:
            raise ValueError(f"q is on {q.device}, {name} on {x.device}: move one")
        if x.dim() != 4 or x.shape != q.shape:
            shapes = f"q {tuple(q.shape)}, {name} {tuple(x.shape)}"
            raise ValueError(f"need one shape [batch, heads, seq, head_dim] for all: {shapes}")
    if q.shape[-1] > 256:
        raise ValueError(f"head_dim is {q.shape[-1]}: a tile of more than 256 columns does not fit")
    if q.shape[0] * q.shape[1] > 65535:
        raise ValueError(f"{q.shape[0] * q.shape[1]} heads in all: the grid takes 65535")


def attend(q, k, v, out, fixed, BLOCK_M, BLOCK_N, num_warps, num_stages):
    batch, heads, seq, dim = q.shape
    values = described(v, BLOCK_N)
    half = [1, BLOCK_N // 2, values.block_shape[2]]
    attention_kernel[(triton.cdiv(seq, BLOCK_M), batch * heads)](
        described(q, BLOCK_M), described(k, BLOCK_N), values,
        TensorDescriptor(values.base, values.shape, values.strides, half), out,
        seq, dim, dim**-0.5 * LOG2_E,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_D=max(16, triton.next_power_of_2(dim)),
        FIXED=fixed, num_warps=num_warps, num_stages=num_stages,
    )


def shape_of(q):
    """BLOCK_M, BLOCK_N, num_warps and num_stages: enough programs first, then large tiles."""
    batch, heads, seq, dim = q.shape
    queries = batch * heads * seq
    if dim > 64:  # the tiles below fit where a row has 64 columns
        return (64, 32, 4, 2) if dim <= 128 and q.element_size() == 2 else (32, 16, 4, 2)
    if q.dtype == torch.float32:
        return 16, 128, 4, 2
    if queries <= 4096:
        return 16, 256, 4, 2
    return 64, 128, 4, 2 if queries >= MANY else 3


def keeps_reference(q):
    """Whether it pays: there must be many tiles of keys to the one that is computed twice."""
    batch, heads, seq, dim = q.shape
    return q.dtype == torch.bfloat16 and dim <= 64 and seq >= 2048 and batch * heads * seq > 4096


def triton_attention(q, k, v):
    check(q, k, v)
    batch, heads, seq, dim = q.shape
    queries = batch * heads * seq
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if not out.numel():
        return out
    if q.dtype == torch.float32 and queries > 4096 and dim <= 64:
        attend_in_limbs(q, k, v, out, *((64, 128, 4, 3) if queries <= 16384 else (128, 64, 8, 2)))
    else:
        attend(q, k, v, out, keeps_reference(q), *shape_of(q))
    return out
