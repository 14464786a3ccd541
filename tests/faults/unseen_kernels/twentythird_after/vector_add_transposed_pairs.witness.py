"""x with its own transpose, and pairs that look alike."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_transposed_pairs.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

worst, n = 0.0, 0
LIMIT = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
for dtype in LIMIT:
    for size in (1, 5, 32, 33, 100):
        x = torch.randn(size, size).to(dtype)
        x[0, size // 2], x[-1, size // 3] = float("inf"), float("nan")
        base = torch.randn(2 * size, 2 * size).to(dtype)
        part, row = base[size:, 1 : size + 1], base[0, :size].expand(size, size)
        window = base.as_strided((size, size), (1, 1))
        pairs = [(x, x.t()), (x.t(), x), (x, x), (x, x.t().clone()), (part, part.t()), (part, base[:size, :size].t()),
                 (row, row.t()), (row.t(), row), (window, window.t()), (base[:size], base[:size].clone()), (base[:, :size].t(), base[:size]),
                 (base[::2, ::2], base[::2, ::2].t())]
        for a, b in pairs:
            for alpha in (1.0, -2.0, 0.1, 0.0, -1.0):
                worst = max(worst, difference(call(a, b, alpha), expect((a, b, alpha))) / LIMIT[dtype])
                n += 1
for shape in ((0, 0), (7, 13), (1025,), (2, 3, 129), (4, 4, 4)):
    a, b = torch.randn(shape), torch.randn(shape)
    worst = max(worst, difference(call(a, b), expect((a, b))) / 1e-6 if a.numel() else 0.0)
    n += 1
print("right" if worst < 1 else "WRONG", n, "inputs; the worst error is", worst, "of its limit")
sys.exit(0 if worst < 1 else 1)
