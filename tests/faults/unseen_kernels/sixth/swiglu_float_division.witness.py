import importlib.util, pathlib, sys
import torch
from triton_magics.operators import swiglu as op

path = pathlib.Path(__file__).with_name(pathlib.Path(__file__).name.replace(".witness.py", ".py"))
spec = importlib.util.spec_from_file_location(path.stem, path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
torch.manual_seed(0)


def wide(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def judge(got, inputs, limit=0.01):
    right = op.reference(*map(wide, inputs))
    error = (got.double() - right).abs()
    error = torch.where(torch.isnan(got.double()) & ~torch.isnan(right), torch.inf, error)
    error = torch.nan_to_num(error, nan=0.0, posinf=float("inf")).max().item()
    print("WRONG" if error > limit else "right", "max error", error)
    sys.exit(0 if error > limit else 1)


gate, up = torch.randn(2100, 2 * 4097).chunk(2, dim=-1)
judge(module.triton_swiglu(gate, up), (gate, up))
