"""Launch kernels and print, for each, our figures beside the driver's, as JSON.

python tests/gpu/figures.py OP:FILE ...
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import torch

from tests.harness.kit import version_of
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.load import load_version
from triton_magics.languages.triton.child.kernel_records import Launch, _record_launches, of_launch
from triton_magics.model import Case

NUM_REGS, LOCAL_SIZE_BYTES = 4, 3  # CUfunction_attribute
DRIVER = ctypes.CDLL("libcuda.so.1")


def attribute(function: int, which: int) -> int:
    """Return an attribute of a loaded kernel from the driver."""
    value = ctypes.c_int()
    failed = DRIVER.cuFuncGetAttribute(ctypes.byref(value), which, ctypes.c_void_p(function))
    assert failed == 0, failed
    return value.value


def blocks_per_sm(kernel: Any) -> int:
    """Return the driver's number of resident blocks of a kernel on one SM."""
    value = ctypes.c_int()
    failed = DRIVER.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ctypes.byref(value), ctypes.c_void_p(kernel.function), 32 * kernel.metadata.num_warps,
        ctypes.c_size_t(kernel.metadata.shared),
    )  # fmt: skip
    assert failed == 0, failed
    return value.value


def figures(op_name: str, path: Path) -> list[dict[str, Any]]:
    """Return one row for each launch of a version."""
    op, version = operators.load(op_name), load_version(version_of(path, op_name))
    rows = []
    for size in ("small", "medium", "large"):
        case = Case(shape=op.sizes[size], dtype="float32", size=size, seed=1)
        launches: list[Launch] = []
        with _record_launches(launches.append):
            version.call(*make_pristine(op, case, torch.device("cuda")))
        torch.cuda.synchronize()
        for launch in launches:
            kernel = launch.kernel
            warps = blocks_per_sm(kernel) * kernel.metadata.num_warps
            rows.append(
                {
                    "size": size,
                    "ours": json.loads(of_launch(launch, size).model_dump_json()),
                    "registers": attribute(kernel.function, NUM_REGS),
                    "spill_bytes": attribute(kernel.function, LOCAL_SIZE_BYTES),
                    "occupancy_pct": 100 * warps / 64,
                }
            )
    return rows


if __name__ == "__main__":
    kernels = [word.split(":", 1) for word in sys.argv[1:]]
    print(json.dumps({path: figures(op, Path(path)) for op, path in kernels}))
