"""Tests of the record of names that a version may not replace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import time, builtins, json, torch
from triton_magics.harness.process.changed_names import NameRecord
record = NameRecord()
nothing = record.restore()
softmax, clock = torch.softmax, time.perf_counter
exec(compile('''
import torch, time, builtins
torch.softmax = lambda x, dim: x
torch.Tensor.__sub__ = lambda a, b: a
torch.cuda.Event.elapsed_time = lambda a, b: 0.1
time.perf_counter = lambda: 0.0
class EqualToAll:
    def __eq__(self, other): return True
    def __call__(self, *tensors): return True
import math; math.sqrt = EqualToAll()
del builtins.sum
builtins.all = lambda values: True
torch.a_new_name = lambda: 0
''', "/cells/v1.py", "exec"))
replaced = sorted(record.restore())
import torch._dynamo, torch.utils.cpp_extension, torch.library
again = record.restore()
back = torch.softmax is softmax and time.perf_counter is clock
back = back and "__sub__" not in vars(torch.Tensor)
print(json.dumps([nothing, replaced, again, back and sum([1]) == 1]))
"""


@pytest.mark.in_turn
def test_replaced_names_are_restored_but_torchs_imports_are_not() -> None:
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=True,
        cwd=ROOT,
    )  # fmt: skip
    nothing, replaced, again, is_back = json.loads(answer.stdout)
    assert nothing == again == []
    assert len(replaced) == 7
    ends = ("softmax", "__sub__", "elapsed_time", "perf_counter", "sum", "sqrt", "all")
    assert all(any(name.endswith(end) for name in replaced) for end in ends), replaced
    assert is_back
