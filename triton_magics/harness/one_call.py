"""Call a version once, under a tool such as compute-sanitizer; the request is in a file."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import load_op, load_version
from triton_magics.harness.process.device import GPU
from triton_magics.harness.profiling.replayed_call import ReplayRequest


def main(path: str) -> None:
    """Load the version and call it on the case.

    A profiled call comes after one that compiles and tunes, and alone is inside the range of the
    CUDA profiler.
    """
    request = ReplayRequest.model_validate_json(Path(path).read_bytes())
    arguments = make_pristine(load_op(request.op), request.case, GPU)
    version = load_version(request.version)
    torch.cuda.synchronize()
    with torch.no_grad():
        version.call(*arguments)
        torch.cuda.synchronize()
        if request.is_profiled:
            torch.cuda.profiler.start()
            version.call(*arguments)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1])
