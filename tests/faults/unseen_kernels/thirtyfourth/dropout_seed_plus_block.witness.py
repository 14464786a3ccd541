"""Shows the fault of dropout_seed_plus_block.py."""
import importlib.util
import sys
from pathlib import Path

import torch

path = Path(__file__).with_name("dropout_seed_plus_block.py")
spec = importlib.util.spec_from_file_location("dropout_seed_plus_block", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
run = module.triton_dropout
g = torch.Generator().manual_seed(7)
fine = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((7, 13), (3, 1000), (20, 64)):
        for p in (0.5, 0.1, 0.0):
            x = torch.randn(shape, generator=g).to(dtype)
            out = run(x, p, 42)
            recorded = out != 0
            want = (x.double() / (1 - p)).to(dtype).double()
            off = ((out.double() - want).abs()[recorded & (x != 0)] / want.abs()[recorded & (x != 0)]).max().item()
            rate = recorded.double().mean().item()
            sigma = (p * (1 - p) / x.numel()) ** 0.5
            same = ((run(x, p, 43) != 0) == recorded).double().mean().item()
            ok = off <= 2 * torch.finfo(dtype).eps and abs(rate - (1 - p)) <= 4 * sigma + 1e-9
            ok = ok and torch.equal(out, run(x, p, 42)) and (p == 0 or same < 0.95)
            fine.append(ok)
            print("ordinary", dtype, shape, p, f"scale {off:.2g} rate {rate:.3f} as seed + 1 {same:.3f}")
one = torch.ones(2048)
first, second = run(one, 0.5, 10) != 0, run(one, 0.5, 11) != 0
alike = (first[256:] == second[:-256]).double().mean().item()
print("fault: mask of seed 11 is that of seed 10, moved by 256, at", alike, "of the places: should be about 0.5")
sys.exit(0 if all(fine) and alike > 0.9 else 1)
