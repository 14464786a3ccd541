"""Each template is right for its example op: in Triton's interpreter, and on a GPU where one is.

The interpreter is chosen when Triton is imported, hence a process of its own. Its bfloat16
arithmetic is wrong, so the templates are run in float32 and float16 there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

TEMPLATES = Path(__file__).parents[2] / "knowledge" / "templates"
PATTERNS = ("elementwise", "reduction", "matmul", "fused")
PROGRAM = '''
import importlib.util, json, sys
import torch

REFERENCE = {"elementwise": torch.mul, "reduction": lambda x: x.sum(-1),
             "fused": lambda x: torch.softmax(x, -1), "matmul": torch.matmul}
DEVICE = sys.argv[2]
DTYPES = [getattr(torch, name) for name in sys.argv[3:]]
LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
SHAPES = [(1, 1), (7, 13), (1, 1000), (3, 4097), (5,), (2, 3, 5), (33, 1)]
MATMULS = [(1, 1, 1), (7, 5, 13), (65, 129, 33), (17, 70, 0)]

def randn(*shape, dtype):
    return torch.randn(*shape, device=DEVICE).to(dtype)

def wrapper(name):
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.triton_template

def inputs(name, dtype):
    """Contiguous, then strided: transposed, and every second column."""
    if name == "matmul":
        for m, n, k in MATMULS:
            yield randn(m, k, dtype=dtype), randn(k, n, dtype=dtype)
            yield randn(k, m, dtype=dtype).T, randn(n, 2 * k, dtype=dtype)[:, ::2].T
        return
    count = 2 if name == "elementwise" else 1
    for shape in SHAPES:
        yield tuple(randn(*shape, dtype=dtype) for _ in range(count))
        flipped = shape[::-1]
        yield tuple(randn(*flipped, dtype=dtype).permute(*range(len(shape))[::-1])
                    for _ in range(count))
        yield tuple(randn(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., ::2]
                    for _ in range(count))

def agrees(function, name, given, dtype):
    got, oracle = function(*given), REFERENCE[name](*(t.double() for t in given))
    assert got.dtype == dtype and got.shape == oracle.shape, (got.dtype, got.shape, oracle.shape)
    scale = max(1.0, oracle.abs().max().item())
    return (got.double() - oracle).abs().max().item() <= LIMITS[dtype] * scale

def refusals(function, name):
    x = torch.ones(3, 5, device=DEVICE)
    wrong = {"elementwise": [(x, x[:2]), (x, x.half()), (x.int(), x.int())],
             "reduction": [(x.double(),), (torch.tensor(1.0),)],
             "fused": [(x.double(),), (torch.tensor(1.0),), (torch.ones(1, 65537),)],
             "matmul": [(x, x), (x, x.T.half()), (x[None], x.T)]}
    refused = 0
    for given in wrong[name]:
        try:
            function(*given)
        except ValueError:
            refused += 1
    return refused == len(wrong[name])

torch.manual_seed(0)
report = {}
for name in REFERENCE:
    function = wrapper(name)
    wrong = [(str(dtype), [list(t.shape) for t in given])
             for dtype in DTYPES for given in inputs(name, dtype)
             if not agrees(function, name, given, dtype)]
    report[name] = {"wrong": wrong, "refuses": refusals(function, name)}
json.dump(report, sys.stdout)
'''


def run(device: str, *dtypes: str, **environment: str) -> dict[str, dict[str, object]]:
    program = [sys.executable, "-c", PROGRAM, str(TEMPLATES), device, *dtypes]
    done = subprocess.run(
        program, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def report() -> dict[str, dict[str, object]]:
    return run("cpu", "float32", "float16", TRITON_INTERPRET="1")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_template_is_right_for_its_example_op(report, pattern):
    assert report[pattern]["wrong"] == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_template_raises_value_error_for_unsupported_input(report, pattern):
    assert report[pattern]["refuses"]


@pytest.mark.gpu
def test_every_template_is_right_on_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    on_gpu = run("cuda", "float32", "float16", "bfloat16", TRITON_INTERPRET="0")
    assert on_gpu == {pattern: {"wrong": [], "refuses": True} for pattern in PATTERNS}
