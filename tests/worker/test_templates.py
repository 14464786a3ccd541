"""Each template is right for its example op: run in Triton's interpreter, in a process of its own.

The interpreter is chosen when Triton is imported, hence the process. Its bfloat16 arithmetic is
wrong, so the templates are run in float32 and float16 here.
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
PROGRAM = '''
import importlib.util, json, sys
import torch

REFERENCE = {"elementwise": torch.mul, "reduction": lambda x: x.sum(-1),
             "fused": lambda x: torch.softmax(x, -1), "matmul": torch.matmul}
SHAPES = [(1, 1), (7, 13), (1, 1000), (3, 4097), (5,), (2, 3, 5), (33, 1)]
MATMULS = [(1, 1, 1), (7, 5, 13), (65, 129, 33), (17, 70, 0)]

def wrapper(name):
    spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.triton_template

def inputs(name, dtype):
    """Contiguous, then strided: transposed, and every second column."""
    if name == "matmul":
        for m, n, k in MATMULS:
            yield torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
            yield torch.randn(k, m, dtype=dtype).T, torch.randn(n, 2 * k, dtype=dtype)[:, ::2].T
        return
    count = 2 if name == "elementwise" else 1
    for shape in SHAPES:
        yield tuple(torch.randn(shape, dtype=dtype) for _ in range(count))
        flipped = shape[::-1]
        yield tuple(torch.randn(flipped, dtype=dtype).permute(*range(len(shape))[::-1])
                    for _ in range(count))
        yield tuple(torch.randn(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., ::2]
                    for _ in range(count))

def agrees(function, name, given, dtype):
    got, oracle = function(*given), REFERENCE[name](*(t.double() for t in given))
    limit = 1e-5 if dtype == torch.float32 else 2e-3
    assert got.dtype == dtype and got.shape == oracle.shape, (got.dtype, got.shape, oracle.shape)
    scale = max(1.0, oracle.abs().max().item())
    return (got.double() - oracle).abs().max().item() <= limit * scale

def refusals(function, name):
    x = torch.ones(3, 5)
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
             for dtype in (torch.float32, torch.float16) for given in inputs(name, dtype)
             if not agrees(function, name, given, dtype)]
    report[name] = {"wrong": wrong, "refuses": refusals(function, name)}
json.dump(report, sys.stdout)
'''


@pytest.fixture(scope="module")
def report() -> dict[str, dict[str, object]]:
    program = [sys.executable, "-c", PROGRAM, str(TEMPLATES)]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("pattern", ["elementwise", "reduction", "matmul", "fused"])
def test_a_template_is_right_for_its_example_op(report, pattern):
    assert report[pattern]["wrong"] == []


@pytest.mark.parametrize("pattern", ["elementwise", "reduction", "matmul", "fused"])
def test_a_template_refuses_what_it_can_not_do_with_a_value_error(report, pattern):
    assert report[pattern]["refuses"]
