"""The op, the machine, and a version: source and compilation."""

from __future__ import annotations

import hashlib
from typing import Any

from triton_magics.model import (
    Compilation,
    EngineState,
    Environment,
    KernelError,
    KernelResources,
    KernelSource,
    OpFacts,
    Status,
    Technique,
    Written,
)

SHAPES = {"small": (256, 256), "medium": (1024, 1024), "large": (4096, 4096)}


DTYPES = ("float32", "float16", "bfloat16")


TIMES_US = {
    "torch": (2.2, 6.1, 55.1),
    "v1_baseline": (1.9, 4.0, 47.0),
    "v2_tiling": (1.9, 3.9, 33.1),
    "v3_coalesced": (1.9, 3.9, 33.4),
    "v4_optimized": (1.85, 3.8, 32.9),
    "v5": (2.4, 7.3, 81.0),
    "v6_warp_specialised_persistent": (1.9, 3.7, 31.8),
}


SOURCE = """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    top = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + cols, top / tl.sum(top, axis=0), mask=mask)


def triton_softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK_SIZE=block)
    return out
"""


GPU = Environment(
    device_kind="gpu",
    device="NVIDIA H200",
    capability="9.0",
    gpu_uuid="GPU-0000",
    driver="580.95",
    cuda="13.0",
    sm_count=132,
    python="3.11.7",
    torch="2.11.0",
    triton="3.6.0",
    numpy="2.2.0",
    flags=("tf32 off",),
)


CPU = Environment(
    device_kind="interpreter",
    device="CPU (interpreter)",
    python="3.11.7",
    torch="2.13.0",
    triton="3.7.1",
)


FACTS = OpFacts(
    name="softmax",
    torch_equivalent="torch.softmax(x, -1)",
    signature="triton_softmax(x)",
    formula="exp(x - max(x)) / sum(exp(x - max(x))), over the last dimension",
    description="Turns each row into shares that add up to 1.",
    input_shapes="x [n, m]",
    output_shape="[n, m]",
    complexity="about 5·n·m flops",
    memory_pattern="2·n·m·itemsize bytes",
    tips=("Subtract the row's maximum before `exp`.", "Mask with -inf, not 0."),
    techniques=("online_reduction", "tiling"),
    pattern="reduction",
    sizes=SHAPES,
    dtypes=DTYPES,
)


TECHNIQUES = (
    Technique(
        name="online_reduction",
        title="Online reduction",
        description="Keeps a running maximum and sum, one pass over the row.",
        helps_when="rows are longer than a block",
        ops=("softmax",),
    ),
    Technique(
        name="tiling",
        title="Tiling",
        description="Each program works on a tile that fits in registers.",
        helps_when="data is read more than once",
        ops=("softmax", "matmul"),
    ),
)


ENGINE = EngineState(device_kind="gpu", device="NVIDIA H200", standby_ready=True)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def source(version: str = "v1_baseline", attempt: int = 1, code: str = SOURCE) -> KernelSource:
    return KernelSource(
        op="softmax",
        version=version,
        attempt=attempt,
        source=code,
        sha256=sha256(code),
        entry="triton_softmax",
        signature="(x)",
        path=f"kernels/softmax/{version}.py",
        header_lines=12,
        cell_offset=1,
    )


def compilation(version: str = "v1_baseline", **changes: Any) -> Compilation:
    kernel = KernelResources(
        name="softmax_kernel",
        size="small",
        grid=(256,),
        num_warps=4,
        num_stages=3,
        registers=32,
        spill_bytes=0,
        shared_bytes=512,
        occupancy_pct=100.0,
    )
    values: dict[str, Any] = {
        "op": "softmax",
        "version": version,
        "attempt": 1,
        "sha256": sha256(SOURCE),
        "status": Status.PASSED,
        "target": "sm_90",
        "duration_s": 0.31,
        "kernels": (kernel,),
    }
    return Compilation(**values | changes)


def compile_error(**changes: Any) -> KernelError:
    values: dict[str, Any] = {
        "kind": "CompilationError",
        "message": "NameError: 'n_colz' is not defined",
        "line": 10,
        "column": 19,
        "cell_line": 11,
        "file": "kernels/softmax/v1_baseline.py",
        "file_line": 22,
        "code": "    mask = cols < n_colz",
        "hint": "did you mean 'n_cols'?",
        "traceback": 'Traceback (most recent call last):\n  File "/home/someone/x.py", line 1\n',
    }
    return KernelError(**values | changes)


def written(**changes: Any) -> Written:
    values: dict[str, Any] = {
        "source": source(),
        "compilation": compilation(),
        "next_version": "v2_tiling",
        "next_technique": "Tiling",
        "block_hint": "a power of two that covers the row",
    }
    return Written(**values | changes)
