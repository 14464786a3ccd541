"""Witness of dropout_nearly_a_sixteenth.py: 20,000 elements, p = 0.005: about 100 should be dropped.

Usual p (0.5, 0.1, 0.25, 0) are judged by the op's own check without calls of other p, and by the rate.
Exits 0 if p = 0.005 is clearly wrong and the usual ones are right, else 1.
"""

import importlib.util
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, __file__.rsplit("/tests/", 1)[0])

import torch  # noqa: E402
from triton_magics.operators import dropout as op  # noqa: E402

KERNEL = Path(__file__).with_name("dropout_nearly_a_sixteenth.py")


def main():
    spec = importlib.util.spec_from_file_location("kernel", KERNEL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run, fine = module.triton_dropout, True
    x = torch.randn(100, 200, generator=torch.Generator().manual_seed(0)) + 3
    for dtype in (torch.float32, torch.float16):
        for p in (0.5, 0.1, 0.25, 0.0):
            out = run(x.to(dtype), p, 7)
            other = run(x.to(dtype), p, 8)
            fault = op.check((x.to(dtype), p, 7), out) or (p and torch.equal(out, other))
            fine &= not fault
            print(f"usual p = {p} {dtype}: {fault or 'right'}, {int((out == 0).sum())} dropped")
    wrong = True
    for p, likely in ((0.005, 100), (0.995, 19_900)):
        out = run(x, p, 7)
        dropped = int((out == 0).sum())
        bad = abs(dropped - likely) > 80
        wrong &= bad
        print(f"{'WRONG' if bad else 'right'} max error: p = {p}, {dropped} of {x.numel()} dropped, should be about {likely}; at any kept or dropped place")
    return 0 if fine and wrong else 1


if __name__ == "__main__":
    sys.exit(main())
