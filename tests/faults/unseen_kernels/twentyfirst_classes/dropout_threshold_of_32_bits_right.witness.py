"""Small, usual and large p: the numbers dropped, the values, the neighbours, the seeds."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_threshold_of_32_bits_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

wrong = []
for p, shape in ((0.0, (100, 100)), (1e-5, (2000, 1024)), (0.001, (1000, 300)), (0.1, (1000, 300)), (0.5, (1000, 300)), (0.9, (1000, 300)),
                 (0.999, (1000, 300)), (0.99999, (2000, 1024))):
    x = torch.ones(shape)
    n = x.numel()
    out = call(x, p, 5)
    zeros = int((out == 0).sum())
    if abs(zeros - n * p) > 5 * (n * p * (1 - p)) ** 0.5:
        wrong.append((p, zeros, n * p))
    left = out[out != 0].double()
    if len(left) and float((left * (1 - p) - 1).abs().max()) > 1e-5:
        wrong.append((p, "values"))
for p in (0.1, 0.5, 0.75):
    masks = [call(torch.ones(300, 300), p, seed).flatten() != 0 for seed in (0, 1, 2, 2**31, 2**32, 2**32 + 1, 2**63 - 1)]
    masks += [masks[0].roll(k) for k in (1, 2, 300)]
    for i, one in enumerate(masks):
        for other in masks[:i]:
            both = float((one & other).double().mean())
            if abs(both - (1 - p) ** 2) > 0.01:
                wrong.append((p, i, both))
if not torch.equal(call(torch.ones(70, 70), 0.3, 9), call(torch.ones(70, 70), 0.3, 9)):
    wrong.append("not the same twice")
for dtype in (torch.float16, torch.bfloat16):
    x = torch.randn(65, 33).to(dtype).t()
    out = call(x, 0.25, 3)
    expected = x.double() / 0.75
    if float(((out.double() - expected).abs() / expected.abs())[out != 0].max()) > 0.01 or out.dtype != dtype:
        wrong.append(dtype)
print("WRONG" if wrong else "right", wrong)
sys.exit(0 if wrong else 1)
