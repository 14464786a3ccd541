"""Call a version once, under a tool such as compute-sanitizer.

The request is in a file, or comes through a FIFO: then this process has imported all by then.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch

from triton_magics import languages, operators
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import compile_cache, load_op, load_version
from triton_magics.harness.process.device import GPU
from triton_magics.harness.profiling.replayed_call import CallFacts, read_request


def main(path: str) -> None:
    """Load the version and call it on the case.

    A profiled or recorded call comes after one that compiles and tunes. A profiled one alone is
    inside the range of the CUDA profiler. Launchers come from the shared cache (a second of gcc
    each), kernels do not: their lines name the files of this process, which ncu reads.
    """
    for runtime in languages.used_runtimes():
        runtime.preload()  # the request may come later
    request = read_request(Path(path))
    op = load_op(request.op)
    arguments = make_pristine(op, request.case, GPU)
    version = load_version(request.version)
    torch.cuda.synchronize()
    with torch.no_grad():
        with compile_cache((), language=request.version.language):
            output = version.call(*arguments)
        torch.cuda.synchronize()
        if request.facts:
            facts = _facts(op, arguments, output)
        if request.then == "profile":
            torch.cuda.profiler.start()
            version.call(*arguments)
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        if request.then == "record":
            from triton_magics.harness.profiling.activity import record

            facts = record(lambda: version.call(*arguments), facts)
    if request.facts:
        Path(request.facts).write_text(facts.model_dump_json())


def _facts(op: operators.Op, arguments: tuple[Any, ...], output: Any) -> CallFacts:
    """Return the compulsory bytes and the operations of the call."""
    outputs = output if isinstance(output, tuple | list) else (output,)
    n_bytes = sum(x.nbytes for x in (*arguments, *outputs) if isinstance(x, torch.Tensor))
    if op.bytes is not None:
        n_bytes = int(op.bytes(*arguments, output=output))
    flops = int(op.flops(*arguments)) if op.flops else None
    return CallFacts(bytes=n_bytes, flops=flops)


if __name__ == "__main__":
    sys.path.append(os.getcwd())  # last, so that a user's module can't shadow one of torch's
    main(sys.argv[1])
