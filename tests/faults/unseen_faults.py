"""Faults written after the rules that explain wrong outputs, by round, to tune none of them.

Each is one substitution in a right kernel of the corpus, or of an op of `unseen_ops.py`: the kernel,
its cause (see `corpus_causes.py`), the code, the code in its place.
"""

# ruff: noqa: E501 (a substitution stays on its line)
from __future__ import annotations

from tests.faults.unseen_ops import OPS
from tests.harness.kit import KERNELS

Fault = tuple[str, str, str, str]

FIRST: tuple[Fault, ...] = (
    ("gelu_flat", "wrong_formula", "0.7071067811865476", "0.5"),
    ("gelu_two_kernels", "wrong_formula", "0.5 * x * cdf", "x * cdf"),
    ("gelu_two_kernels", "lower_precision", "x.shape, dtype=torch.float32", "x.shape, dtype=torch.bfloat16"),
    ("layer_norm_two_kernels", "missing_mask", "tl.where(mask, x - mean, 0.0)", "x - mean"),
    ("layer_norm_many_rows", "wrong_formula", "* tl.rsqrt(var + eps) * w + b", "* tl.rsqrt(var + eps) + b"),
    ("layer_norm_blocks", "wrong_formula", "/ n_cols + eps)", "/ n_cols)"),
    ("layer_norm_blocks", "wrong_formula", "(x - mean) * scale * w + b, mask", "(x - mean) / scale * w + b, mask"),
    ("layer_norm_two_kernels", "wrong_formula", "scale = tl.load(stats_ptr + 2 * row + 1", "scale = tl.load(stats_ptr + 2 * row"),
    ("cross_entropy_rows", "wrong_formula", "loss.mean()", "loss.max()"),
    ("cross_entropy_rows", "wrong_stride", "tl.load(target_ptr + row))", "tl.load(target_ptr))"),
    ("cross_entropy_two_kernels", "missing_rescale", "total * tl.exp(largest - new) + ", "total + "),
    ("cross_entropy_two_kernels", "truncated_extent", "range(0, n, BLOCK)", "range(0, n - BLOCK + 1, BLOCK)"),
    ("attention_flash", "missing_rescale", "acc * shrink[:, None] + ", "acc + "),
    ("attention_flash", "wrong_formula", "dim**-0.5", "1.0 / dim"),
    ("attention_flash", "wrong_formula", "acc / total[:, None]", "acc"),
    ("attention_three_kernels", "wrong_stride", "k.stride(0), k.stride(2), k.stride(1)", "k.stride(0), k.stride(1), k.stride(2)"),
    ("mha_flash", "wrong_formula", "cols[None, :] <= rows[:, None]", "cols[None, :] < rows[:, None] + 3"),
    ("mha_flash", "wrong_formula", "cols[None, :] <= rows[:, None]", "cols[None, :] >= rows[:, None]"),
    ("add_strided", "wrong_stride", "+ cols * yc", "+ cols * xc"),
    ("add_autotuned", "wrong_formula", "x + alpha * y", "alpha * x + y"),
    ("add_persistent", "truncated_extent", "range(tl.program_id(0), n_blocks, ", "range(tl.program_id(0), n_blocks - 1, "),
    ("matmul_autotuned", "wrong_stride", "ks[:, None] * N", "ks[:, None] * K"),
    ("matmul_block_pointers", "truncated_extent", "range(0, K, BK)", "range(0, K - BK, BK)"),
    ("matmul_autotuned", "truncated_extent", "tl.dot(a, b, acc, ", "tl.dot(a, b, "),
    ("matmul_descriptors", "lower_precision", "tl.dot(a, b, ", "tl.dot(a.to(tl.float16), b.to(tl.float16), "),
    ("softmax_many_rows", "wrong_fill", 'other=-float("inf")', "other=-1.0"),
    ("softmax_online", "wrong_stride", "out_ptr + row * n_cols + cols", "out_ptr + row * BLOCK + cols"),
    ("softmax_strided", "wrong_formula", "numerator / tl.sum(numerator, axis=0)", "numerator / tl.max(numerator, axis=0)"),
    ("softmax_strided", "missing_maximum", "tl.exp(x - tl.max(x, axis=0))", "tl.exp(x)"),
    ("mean_blocks", "wrong_formula", "1.0 / n_cols", "1.0 / (n_cols - 1 or 1)"),
    ("mean_torch_divides", "wrong_formula", "(out / n_cols)", "(out / n_rows)"),
    ("sum_tiles", "truncated_extent", "range(0, n_cols, BLOCK)", "range(0, n_cols - BLOCK + 1, BLOCK)"),
    ("sum_two_stages", "wrong_formula", "tl.store(out_ptr + row, tl.sum(parts, axis=0))", "tl.store(out_ptr + row, tl.max(parts, axis=0))"),
    ("sum_atomics", "race", "tl.atomic_add(out_ptr + row, tl.sum(x, axis=0))", "tl.store(out_ptr + row, tl.load(out_ptr + row) + tl.sum(x, axis=0))"),
    ("relu_flat", "wrong_formula", "tl.where(x < 0, 0.0, x)", "tl.where(x < 1, 0.0, x)"),
    ("mul_tiles", "wrong_formula", "x * y, mask", "x + y, mask"),
    ("mul_flat", "wrong_stride", "y_ptr + offsets, mask=mask)", "y_ptr + offsets // 2, mask=mask)"),
)  # fmt: skip

SECOND: tuple[Fault, ...] = (
    ("add_strided", "wrong_stride", "row * yr + cols * yc", "row * xr + cols * yc"),
    ("add_autotuned", "wrong_formula", "x + alpha * y", "x - alpha * y"),
    ("mul_three_blocks", "truncated_extent", "triton.cdiv(out.numel(), 3 * 512)", "triton.cdiv(out.numel(), 4 * 512)"),
    ("mul_tiles", "wrong_formula", "x * y, mask", "x * x, mask"),
    ("relu_tiles", "wrong_formula", "tl.where(x < 0, 0.0, x)", "tl.where(x > 0, 0.0, x)"),
    ("relu_tiles", "wrong_stride", "rows * xr + cols * xc", "rows * xc + cols * xr"),
    ("gelu_flat", "wrong_formula", "0.7071067811865476", "0.7978845608"),
    ("gelu_autotuned", "wrong_formula", "y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))", "y = 0.5 * x * (1.0 + tl.erf(x))"),
    ("sum_blocks", "truncated_extent", "range(0, n_cols, STEP)", "range(0, n_cols - STEP, STEP)"),
    ("sum_two_stages", "truncated_extent", "BLOCK=triton.next_power_of_2(n_parts)", "BLOCK=1"),
    ("sum_tiles", "wrong_stride", "cols[None, :] * xc", "cols[None, :]"),
    ("mean_row", "wrong_formula", "tl.sum(x, axis=0) / n_cols", "tl.sum(x, axis=0) / BLOCK"),
    ("mean_blocks", "missing_mask", ", mask=cols < n_cols, other=0.0", ""),
    ("mean_blocks", "lower_precision", "acc = tl.zeros((BLOCK,), dtype=tl.float32)", "acc = tl.zeros((BLOCK,), dtype=tl.float16)"),
    ("softmax_persistent", "wrong_formula", "1.4426950408889634", "1.44"),
    ("softmax_three_kernels", "wrong_fill", 'other=-float("inf"))\n    numerator', "other=0.0)\n    numerator"),
    ("softmax_three_kernels", "wrong_formula", "tl.sum(numerator, axis=0)", "tl.max(numerator, axis=0)"),
    ("softmax_online", "missing_rescale", "total * scale + ", "total + "),
    ("layer_norm_blocks", "truncated_extent", "range(0, n_cols, BLOCK):\n        cols = start + lanes\n        acc", "range(0, n_cols - BLOCK + 1, BLOCK):\n        cols = start + lanes\n        acc"),
    ("layer_norm_many_rows", "wrong_formula", "tl.rsqrt(var + eps)", "(tl.rsqrt(var) + eps)"),
    ("layer_norm_many_rows", "wrong_formula", "rows, weight, bias, out", "rows, bias, weight, out"),
    ("cross_entropy_rows", "wrong_formula", "tl.log(total)", "tl.log2(total)"),
    ("cross_entropy_rows", "missing_maximum", "tl.sum(tl.exp(x - largest), axis=0)", "tl.sum(tl.exp(x), axis=0) * tl.exp(-largest)"),
    ("cross_entropy_atomics", "race", "tl.atomic_add(out_ptr, ", "tl.store(out_ptr, tl.load(out_ptr) + "),
    ("attention_flash", "missing_mask", 'tl.where((cols < seq)[None, :], scores, -float("inf"))', "scores"),
    ("attention_flash", "wrong_formula", "p = tl.exp(", "p = tl.exp2("),
    ("attention_three_kernels", "wrong_formula", "k.stride(1), dim**-0.5", "k.stride(1), 1.0"),
    ("mha_stops_at_the_diagonal", "truncated_extent", "(tl.program_id(0) + 1) * BM", "tl.program_id(0) * BM + 1"),
    ("mha_stops_at_the_diagonal", "wrong_stride", "head * kh + cols[:, None] * ks", "head * kh + cols[:, None] * qs"),
    ("matmul_grouped", "wrong_stride", "ks[:, None] * bk + cols[None, :] * bn", "ks[:, None] * bn + cols[None, :] * bk"),
    ("matmul_persistent", "truncated_extent", "tl.cdiv(M, BM) * tiles_n", "(M // BM) * tiles_n"),
    ("matmul_split_k", "truncated_extent", "triton.cdiv(N, 64), 2)", "triton.cdiv(N, 64), 1)"),
    ("matmul_persistent", "truncated_extent", "acc += tl.dot", "acc = tl.dot"),
    ("dropout_flat", "wrong_rate", "tl.rand(seed, offsets) >= p", "tl.rand(seed, offsets) < p"),
    ("dropout_flat", "ignored_argument", "tl.rand(seed, offsets)", "tl.rand(0, offsets)"),
)  # fmt: skip

THIRD: tuple[Fault, ...] = (
    ("add_strided", "wrong_formula", "x + alpha * y", "x + y"),
    ("add_autotuned", "truncated_extent", 'triton.cdiv(out.numel(), meta["BLOCK"])', 'max(1, out.numel() // meta["BLOCK"])'),
    ("mul_tiles", "lower_precision", "x * y, mask", "x.to(tl.float16) * y.to(tl.float16), mask"),
    ("mul_tiles", "wrong_stride", "rows * n_cols + cols, x * y", "cols * n_rows + rows, x * y"),
    ("relu_tiles", "wrong_formula", "tl.where(x < 0, 0.0, x)", "tl.where(x < 0, -x, x)"),
    ("relu_flat", "wrong_formula", "tl.where(x < 0, 0.0, x)", "tl.where(x < 0, 0.01 * x, x)"),
    ("gelu_two_kernels", "wrong_formula", "1.0 + tl.erf(", "tl.erf("),
    ("gelu_autotuned", "wrong_formula", "(1.0 + tl.erf", "(0.5 + tl.erf"),
    ("sum_two_stages", "truncated_extent", "n_parts = triton.cdiv(n_cols, 1024)", "n_parts = max(1, n_cols // 1024)"),
    ("sum_atomics", "wrong_formula", "tl.sum(x, axis=0)", "tl.max(x, axis=0)"),
    ("sum_blocks", "truncated_extent", "(lanes < STEP) & ", "(lanes < STEP - 1) & "),
    ("mean_torch_divides", "wrong_formula", "(out / n_cols)", "(out / (n_cols + 1))"),
    ("mean_row", "wrong_stride", "row * n_cols + cols", "row * BLOCK + cols"),
    ("softmax_many_rows", "wrong_formula", "tl.sum(numerator, axis=1)[:, None]", "tl.sum(numerator)"),
    ("softmax_strided", "wrong_stride", "row * x_row_stride + cols * x_col_stride", "row * n_cols + cols"),
    ("softmax_persistent", "missing_maximum", "(x - tl.max(x, axis=0))", "x"),
    ("softmax_three_kernels", "wrong_fill", 'other=-float("inf"))\n    tl.store(max_ptr', "other=0.0)\n    tl.store(max_ptr"),
    ("layer_norm_two_kernels", "wrong_formula", "1.0 / tl.sqrt(var + eps)", "1.0 / (var + eps)"),
    ("layer_norm_two_kernels", "wrong_stride", "offsets // n_cols, offsets % n_cols", "offsets // BLOCK, offsets % n_cols"),
    ("layer_norm_blocks", "wrong_formula", "* scale * w + b", "* scale * (w + b)"),
    ("layer_norm_many_rows", "wrong_stride", "cols * ws, mask", "cols, mask"),
    ("cross_entropy_rows", "wrong_formula", " + largest - picked", " - picked"),
    ("cross_entropy_two_kernels", "truncated_extent", "offsets < n, other", "offsets < n - 1, other"),
    ("cross_entropy_atomics", "wrong_formula", ") / n_rows)", ") / n_cols)"),
    ("cross_entropy_two_kernels", "wrong_stride", "tl.load(target_ptr + row * ts)", "tl.load(target_ptr + row)"),
    ("attention_flash", "wrong_formula", "dim**-0.5", "seq**-0.5"),
    ("attention_flash", "missing_rescale", "total = total * shrink + ", "total = total + "),
    ("attention_three_kernels", "truncated_extent", "range(0, K, BK)", "range(0, K - BK + 1, BK)"),
    ("mha_flash", "wrong_formula", "if CAUSAL:", "if not CAUSAL:"),
    ("mha_flash", "wrong_stride", "k_ptr + base + cols[:, None] * dim", "k_ptr + cols[:, None] * dim"),
    ("matmul_split_k", "race", "tl.atomic_add(c_ptr", "tl.store(c_ptr"),
    ("matmul_grouped", "lower_precision", "tl.dot(a, b, ", "tl.dot(a.to(tl.float16), b.to(tl.float16), "),
    ("matmul_torch_transposes", "wrong_stride", "cols[:, None] * K", "cols[:, None] * N"),
    ("matmul_persistent", "truncated_extent", "range(tl.program_id(0), tl", "range(tl.program_id(0) + 1, tl"),
    ("dropout_persistent", "wrong_formula", "1.0 / (1.0 - p)", "1.0"),
    ("dropout_persistent", "shared_draws", "tl.rand(seed, row * n_cols + cols)", "tl.rand(seed, cols)"),
    ("rms_norm", "wrong_formula", "/ n_cols + eps", "/ n_cols"),
    ("rms_norm", "truncated_extent", "range(0, n_cols, BLOCK):\n        cols = start + lanes\n        x =", "range(0, BLOCK, BLOCK):\n        cols = start + lanes\n        x ="),
    ("rms_norm", "wrong_formula", "tl.rsqrt(tl", "1.0 / (tl"),
    ("rms_norm", "wrong_formula", "x * scale * w", "x * scale"),
    ("swiglu", "wrong_formula", "x, y, out, x.numel()", "y, x, out, x.numel()"),
    ("swiglu", "wrong_formula", "tl.exp(-x)", "tl.exp(-1.702 * x)"),
    ("swiglu", "wrong_formula", "x / (1.0", "1.0 / (1.0"),
    ("log_softmax", "wrong_formula", "tl.log(total)", "tl.log2(total)"),
    ("log_softmax", "missing_maximum", "top = tl.max(x, axis=0)", "top = 0.0"),
    ("log_softmax", "wrong_fill", 'other=-float("inf")', "other=0.0"),
)  # fmt: skip

ROUNDS: dict[str, tuple[Fault, ...]] = {"first": FIRST, "second": SECOND, "third": THIRD}


def source_of(fault: Fault) -> str:
    """Return the source of a faulty kernel.

    Raises:
        ValueError: the right kernel does not have the code.
    """
    name, _, old, new = fault
    text = OPS[name][1] if name in OPS else (KERNELS / "right" / f"{name}.py").read_text()
    if old not in text:
        raise ValueError(f"{name}: {old!r} is not in it")
    return text.replace(old, new)
