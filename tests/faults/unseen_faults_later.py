"""Faults written after the rules that explain wrong outputs: the rounds after the seventh.

`unseen_faults.py` describes the form. A kernel is a path below `kernels/`, without its suffix.
"""

# ruff: noqa: E501 (a substitution stays on its line)
from __future__ import annotations

EIGHTH: tuple[tuple[str, str, str, str], ...] = (
    ("right/attention_flash", "wrong_formula", 'tl.trans(k), input_precision="ieee") * scale', 'tl.trans(k), input_precision="ieee") / scale'),
    ("right/attention_flash", "wrong_stride", "out_ptr + base + rows[:, None] * dim + ds[None, :]", "out_ptr + base + rows[:, None] + ds[None, :] * seq"),
    ("right/attention_flash", "lower_precision", "acc * shrink[:, None] + tl.dot(p, v,", "(acc * shrink[:, None]).to(tl.float16).to(tl.float32) + tl.dot(p, v,"),
    ("classes/layouts/attention_own_strides", "wrong_stride", "batch * kb + head * kh", "batch * kb + head * qh"),
    ("classes/layouts/attention_own_strides", "wrong_stride", "ds[None, :] * vd", "ds[None, :] * kd"),
    ("right/attention_three_kernels", "truncated_extent", "BLOCK=triton.next_power_of_2(seq)", "BLOCK=max(16, triton.next_power_of_2(seq) // 2)"),
    ("right/attention_three_kernels", "wrong_formula", "dim**-0.5,", "(dim + 1)**-0.5,"),
    ("right/mha_flash", "wrong_formula", "cols[None, :] <= rows[:, None]", "cols[None, :] <= rows[:, None] // 2"),
    ("right/mha_flash", "wrong_formula", "cols[None, :] <= rows[:, None]", "cols[None, :] <= rows[:, None] % BM"),
    ("right/mha_flash", "wrong_fill", 'tl.where(seen, scores, -float("inf"))', "tl.where(seen, scores, 0.0)"),
    ("right/mha_flash", "wrong_stride", "v_ptr + base", "v_ptr"),
    ("right/mha_flash", "truncated_extent", "total * shrink + tl.sum(p, axis=1)", "total * shrink + tl.sum(tl.where(cols[None, :] < seq - 1, p, 0.0), axis=1)"),
    ("classes/extents/mha_any_head_dim", "wrong_formula", "dim**-0.5,", "BD**-0.5,"),
    ("right/matmul_grouped", "truncated_extent", "% height", "% GROUP"),
    ("right/matmul_grouped", "wrong_formula", "acc, mask=mask)", "acc + 1.0, mask=mask)"),
    ("classes/layouts/matmul_own_strides", "wrong_stride", "rows[:, None] * am", "rows[:, None] * bk"),
    ("right/matmul_persistent", "truncated_extent", "range(0, K, BK)", "range(0, K, 2 * BK)"),
    ("right/matmul_split_k", "lower_precision", 'acc += tl.dot(a, b, input_precision="ieee")', 'acc += tl.dot(a, b, input_precision="ieee").to(tl.bfloat16).to(tl.float32)'),
    ("rope_right", "wrong_formula", "a * cos - b * sin", "a * cos + b * sin"),
    ("rope_right", "wrong_formula", "b * cos + a * sin", "b * sin + a * cos"),
    ("rope_right", "wrong_stride", "sin_ptr + position * half + cols", "sin_ptr + position * half + cols * 0"),
    ("rope_right", "lower_precision", "cos_ptr + position * half + cols, mask=mask)", "cos_ptr + position * half + cols, mask=mask).to(tl.float16)"),
    ("classes/layouts/rope_own_strides", "wrong_stride", "(cols + half) * xd", "(cols + half - 1) * xd"),
    ("classes/extents/rope_any_head_dim", "truncated_extent", "range(0, half, BLOCK)", "range(0, half - BLOCK + 1, BLOCK)"),
    ("swiglu_right", "wrong_formula", "gate * share * up", "gate * (share + up)"),
    ("swiglu_right", "wrong_formula", "tl.exp(-gate)", "tl.exp(-up)"),
    ("swiglu_right", "wrong_formula", "gate * share * up", "share * up"),
    ("classes/layouts/swiglu_rows_of_each", "wrong_stride", "row * up_row", "row * gate_row"),
    ("rms_norm_right", "truncated_extent", "acc += x * x", "acc = x * x"),
    ("classes/extents/rms_norm_any_width", "wrong_formula", "x * scale * w", "x * scale * (1.0 + w)"),
    ("rms_norm_right", "wrong_stride", "x_ptr + row * n_cols + cols, mask=mask)", "x_ptr + cols, mask=mask)"),
    ("quantized_matmul_right", "wrong_formula", "acc * scale[None, :]", "acc / scale[None, :]"),
    ("quantized_matmul_right", "wrong_stride", "w_ptr + cols[None, :] * K + ks[:, None]", "w_ptr + ks[:, None] * N + cols[None, :]"),
    ("quantized_matmul_right", "wrong_stride", "scale_ptr + cols, mask", "scale_ptr + cols * 0, mask"),
    ("quantized_matmul_right", "wrong_formula", "w.to(x.dtype)", "w.to(tl.uint8, bitcast=True).to(x.dtype)"),
    ("classes/combinations/quantized_split_k", "truncated_extent", "range(0, splits)", "range(0, max(1, splits - 1))"),
    ("linear_cross_entropy_right", "wrong_formula", "tl.log(total) + largest - picked", "tl.log(total) - picked"),
    ("linear_cross_entropy_right", "wrong_formula", "cols[None, :] == target[:, None]", "cols[None, :] == rows[:, None]"),
    ("linear_cross_entropy_right", "truncated_extent", "range(0, hidden, BK)", "range(0, hidden - BK + 1, BK)"),
    ("linear_cross_entropy_right", "wrong_formula", "tl.sum(acc, axis=0) / n)", "tl.sum(acc, axis=0) / (n + 1))"),
    ("linear_cross_entropy_right", "wrong_fill", 'logits, -float("inf"))', "logits, 0.0)"),
    ("classes/extents/linear_loss_parts", "missing_rescale", "other=1.0) * tl.exp(its - new)", "other=1.0)"),
    ("right/cross_entropy_two_kernels", "wrong_stride", "row * lr + tl.load(target_ptr + row * ts) * lc", "row * lr"),
    ("right/cross_entropy_rows", "wrong_formula", "+ largest - picked", "+ largest - picked * 0.9"),
    ("right/cross_entropy_two_kernels", "truncated_extent", "range(0, n, BLOCK)", "range(0, n - 1, BLOCK)"),
    ("right/softmax_three_kernels", "wrong_formula", "tl.exp(x.to(tl.float32) - tl.load(max_ptr + tl.program_id(0)))", "tl.exp(x.to(tl.float32))"),
    ("right/softmax_strided", "wrong_formula", "tl.exp(x - tl.max(x, axis=0))", "tl.exp(tl.max(x, axis=0) - x)"),
    ("right/layer_norm_two_kernels", "wrong_formula", "(x - mean) * scale * w + b", "(x - mean) * scale * (1.0 + w) + b"),
    ("right/layer_norm_blocks", "wrong_formula", "b_ptr + cols, mask=mask", "w_ptr + cols, mask=mask"),
    ("right/layer_norm_two_kernels", "wrong_stride", "b_ptr + col, mask=mask", "b_ptr + col // 4, mask=mask"),
    ("right/layer_norm_blocks", "lower_precision", "spread += centred * centred", "spread += (centred * centred).to(tl.float16).to(tl.float32)"),
)  # fmt: skip

LATER_ROUNDS = {"eighth": EIGHTH}
