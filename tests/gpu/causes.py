"""Print as JSON the causes of kernels whose causes only a GPU shows."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import torch

from tests.harness.kit import KERNELS, run_cases
from triton_magics.model import Case

RACE = '''"""Every block adds to the row's sum without an atomic.

op: sum
status: wrong_values
"""
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.load(out_ptr + row) + tl.sum(x, axis=0))


def triton_sum(x):
    x = x.contiguous()
    rows = x.view(-1, x.shape[-1])
    out = torch.zeros(rows.shape[0], device=x.device, dtype=torch.float32)
    kernel[(rows.shape[0], triton.cdiv(rows.shape[1], 64))](rows, out, rows.shape[1], BLOCK=64)
    return out.view(x.shape[:-1]).to(x.dtype)
'''
SUBSTITUTIONS = {
    # name: (right kernel, text to replace, its replacement, case)
    "tf32": (
        "matmul_right", 'input_precision="ieee"', 'input_precision="tf32"',
        Case(shape=(65, 127, 129), dtype="float32", seed=1),
    ),
    "missing mask": (
        "softmax_right", "cols, mask=mask, other=-float(\"inf\"))", "cols)",
        Case(shape=(7, 13), dtype="float32", seed=1),
    ),
    "missing other": (
        "softmax_right", ', other=-float("inf")', "",
        Case(shape=(7, 13), dtype="float32", seed=1),
    ),
    "wrong stride": (
        "softmax_right", "x.contiguous().view(-1, x.shape[-1])",
        "x.as_strided(x.shape, (x.shape[-1], 1)).view(-1, x.shape[-1])",
        Case(shape=(127, 129), dtype="float32", layouts=(("*", "transposed"),), seed=1),
    ),
    "half accumulation": (
        "accumulates_in_half", "tl.float16", "tl.float16",
        Case(shape=(64, 64, 2048), dtype="float16", seed=1),
    ),
    "missing scale": (
        "softmax_right", "out = numerator / tl.sum(numerator, axis=0)",
        "out = 2 * numerator / tl.sum(numerator, axis=0)",
        Case(shape=(7, 13), dtype="float32", seed=1),
    ),
    "part of a sum": (  # nothing of it is left at this shape
        "drops_the_last_k_block", "K - K % BK", "K - K % BK",
        Case(shape=(7, 5, 13), dtype="float32", seed=1),
    ),
}  # fmt: skip


def main() -> None:
    """Run each kernel and print its status, cause and advice."""
    device = torch.device("cuda", 0)
    causes = {}
    with tempfile.TemporaryDirectory() as folder:
        for i, (name, (right, old, new, case)) in enumerate(SUBSTITUTIONS.items()):
            source = (KERNELS / f"{right}.py").read_text()
            assert old in source, (name, source)
            path = Path(folder) / f"kernel{i}.py"
            path.write_text(source.replace(old, new))
            causes[name] = explain(path, case, device)
        path = Path(folder) / "race.py"
        path.write_text(RACE)
        causes["race"] = explain(path, Case(shape=(64, 4096), dtype="float32", seed=1), device)
    json.dump(causes, sys.stdout)


def explain(path: Path, case: Case, device: torch.device) -> dict[str, str | bool | None]:
    result = run_cases(path, case, device=device)[0]
    mismatch = result.mismatch
    return {
        "status": result.status.value,
        "cause": mismatch.cause and mismatch.cause.code if mismatch else result.reason,
        "advice": mismatch.cause and mismatch.cause.advice if mismatch else None,
        "where": mismatch.where if mismatch else None,
        "deterministic": result.deterministic,
    }


if __name__ == "__main__":
    main()
