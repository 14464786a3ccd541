"""Requests of evaluation: the two that the guide prints, and a vector addition that is right."""

from __future__ import annotations

from typing import Any

TRITON: dict[str, Any] = {
    "kernel": {
        "source_code": "...",
        "kernel_type": "triton",
        "io": {
            "args": [
                {
                    "name": "x",
                    "type": "tensor",
                    "tensor_spec": {
                        "shape": [1024],
                        "dtype": "float32",
                        "init": {"kind": "randn", "seed": 42},
                    },
                    "role": "input",
                },
                {
                    "name": "BLOCK_SIZE",
                    "type": "int",
                    "value": 256,
                    "role": "input",
                    "is_meta": True,
                },
            ],
            "launch": {"grid": {"x": 4, "y": 1, "z": 1}, "num_warps": 4},
        },
    }
}
MULTI: dict[str, Any] = {
    "kernel": {
        "source_code": "import torch\nimport triton\n...\ndef run(x, y):\n    ...",
        "kernel_type": "multi_kernel",
        "metadata": {
            "entry_point": "run",
            "description": "Fused add + multiply using Triton and PyTorch",
        },
        "io": {"args": TRITON["kernel"]["io"]["args"][:1]},
    }
}
ADD = """
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
"""
REFERENCE = "def add(x, y):\n    return x + y\n"


def tensor(name: str, role: str = "input", **more: Any) -> dict[str, Any]:
    spec = {"shape": [1000], "dtype": "float32", **more}
    return {"name": name, "type": "tensor", "role": role, "tensor_spec": spec}


CONTRACT: dict[str, Any] = {
    "args": [
        tensor("x_ptr", init={"kind": "randn", "seed": 1}),
        tensor("y_ptr", init={"kind": "randn", "seed": 2}),
        tensor("out_ptr", "output"),
        {"name": "n", "type": "int", "value": 1000},
        {"name": "BLOCK", "type": "int", "value": 256, "is_meta": True},
    ],
    "launch": {"grid": {"x": 4}, "num_warps": 4},
}


def evaluation(source: str = ADD, **more: Any) -> dict[str, Any]:
    """Return a request to evaluate a vector addition."""
    return {
        "kernel": {"source_code": source, "kernel_type": "triton", "io": CONTRACT},
        "reference": {"source_code": REFERENCE, "kernel_type": "torch"},
        **more,
    }
