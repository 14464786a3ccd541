"""One row expanded to 64 rows: all get the same mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_counter_by_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def drop_error(x, out, p):
    """Of the cached elements, with the reference's formula in float64."""
    expected = torch.where(out != 0, x.double() / (1 - p), 0.0)
    return float((out.double() - expected).abs().max() / expected.abs().max())


def equal_rows(out):
    """Return the share of neighbouring rows with one mask; chance makes none for 512 columns."""
    return float(((out[1:] != 0) == (out[:-1] != 0)).all(dim=1).double().mean())


ordinary, p = [], 0.5
for x in (torch.rand(64, 512) + 0.5, torch.rand(512, 64).T + 0.5, (torch.rand(64, 600) + 0.5)[:, :512]):
    out = call(x, p, 7)
    ordinary += [drop_error(x, out, p), equal_rows(out)]
x = torch.randn(2, 3, 129)
fault = dropout.check((x, p, 7), call(x, p, 7), call)
ordinary.append(1.0 if fault else 0.0)
x = (torch.rand(1, 512) + 0.5).expand(64, 512)
out = call(x, p, 7)
print("cached", float((out != 0).double().mean()), "error of the cached", drop_error(x, out, p))
error = equal_rows(out)
print("ordinary", ordinary)
print("WRONG" if error > 0.05 else "right", "share of neighbouring rows with the same mask", error)
sys.exit(0 if error > 0.05 and max(ordinary) < 1e-05 else 1)
