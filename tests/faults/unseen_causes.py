"""Grade the explanations of faults that were written after the rules, to tune none of them.

    python tests/faults/unseen_causes.py

Each fault is one substitution in a right kernel of the corpus. Whoever changes the explanations
writes new faults here, and grades them once.
"""

# ruff: noqa: E501 (a substitution stays on its line)
from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
os.environ["TRITON_INTERPRET"] = "1"

import torch  # noqa: E402

from tests.faults.corpus import stop_at_first_failure  # noqa: E402
from tests.faults.corpus_causes import explanation_of, grade_explanation  # noqa: E402
from tests.faults.corpus_processes import in_child  # noqa: E402
from tests.harness.kit import KERNELS, run_validation  # noqa: E402
from triton_magics.rendering.views.causes import cause_text  # noqa: E402

BUDGET_S = 10.0
FAULTS = (
    # of 2026-11-23: kernel, its cause, the code, the code in its place
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


def grade(number: int) -> tuple[str, str]:
    """Return the grade of one fault's first explanation, and a line on it."""
    name, cause, old, new = FAULTS[number]
    text = (KERNELS / "right" / f"{name}.py").read_text()
    if old not in text:
        raise ValueError(f"{name}: {old!r} is not in it")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(text.replace(old, new))
        answer = run_validation(path, budget_s=BUDGET_S)
    failed = answer.failed_cases
    if not failed:
        return "not caught", f"{name}: {old} -> {new}"
    first = failed[0]
    cause_named = first.mismatch.cause if first.mismatch else None
    text = cause_text(cause_named) if cause_named else f"{first.status.value} {first.reason or ''}"
    grade = grade_explanation(cause, explanation_of(first))
    return grade, f"{name}: {old} -> {new}\n{'':12}{cause}; {text}"


def main() -> int:
    """Print the grade of each fault, and the shares."""
    stop_at_first_failure()
    torch.set_num_threads(1)
    started, grades = time.monotonic(), []
    for number in range(len(FAULTS)):
        answer = in_child(grade, number)
        grades.append(answer[0] if answer else "died")
        print(f"{grades[-1]:12}{answer[1] if answer else FAULTS[number][0]}", flush=True)
    counts = {g: grades.count(g) for g in dict.fromkeys(grades)}
    shares = ", ".join(f"{g} {n} ({n / len(grades):.0%})" for g, n in counts.items())
    print(f"\n{len(grades)} faults in {time.monotonic() - started:.0f} s: {shares}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
