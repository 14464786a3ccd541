"""Ops of a test's own, from their source: described, validated, timed in this process."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from tests.harness.kit import Recorder
from triton_magics import languages
from triton_magics.execution.job_answers import OpDescription
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import BenchJob, DescribeJob, ValidateJob
from triton_magics.harness.correctness import describe_job, validate_job
from triton_magics.harness.timing import bench_job
from triton_magics.model import Benchmark, Validation

NAME = "own"
RANDN = """
import torch
def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)
"""
DOUBLE_OP = RANDN + "def reference(x): return 2 * x\n"
KERNEL_HEAD = """
import torch
import triton
import triton.language as tl
"""
# FACTOR is replaced: 2 is right
DOUBLE = (
    KERNEL_HEAD
    + """

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * FACTOR, mask=offsets < n)


def triton_own(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y
"""
)
RIGHT_DOUBLE = DOUBLE.replace("FACTOR", "2")
WRONG_DOUBLE = DOUBLE.replace("FACTOR", "3")


def version(
    source: str, name: str = NAME, *, op: OpRef | None = None, language: str = "triton"
) -> VersionRef:
    """Return a kernel's source as a version of the op."""
    return VersionRef(
        version="v1_baseline",
        attempt=1,
        source=source,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
        entry=languages.get(language).parse(source, op=name).name,
        header_lines=0,
        cell_offset=1,
        shown_path=f"kernels/{name}/v1_baseline.py",
        language=language,
        op=op,
    )


def describe(op: str) -> OpDescription:
    """Return the description of an op; an error of its author is raised."""
    answer, _ = describe_job.run(DescribeJob(op=OpRef.own(NAME, op)), Recorder())
    assert isinstance(answer, OpDescription), answer
    return answer


def validate(
    op: str | OpRef, kernel: str, *, language: str = "triton", **changes: Any
) -> Validation:
    """Return the validation of a kernel of an op; a quick one."""
    ref = OpRef.own(NAME, op) if isinstance(op, str) else op
    own = version(kernel, ref.name, op=ref, language=language)
    fields = {"op": ref, "version": own, "seed": 7, "plan": "quick"}
    with np.errstate(all="ignore"):  # NaN is an input here
        answer, _ = validate_job.run(ValidateJob(**fields | changes), Recorder())
    assert isinstance(answer, Validation), answer
    return answer


def bench(op: str | OpRef, kernel: str, **changes: Any) -> Benchmark:
    """Return the benchmark of a kernel of an op in the interpreter; one run a size."""
    ref = OpRef.own(NAME, op) if isinstance(op, str) else op
    fields: dict[str, Any] = {
        "op": ref, "versions": (version(kernel, ref.name, op=ref),), "sizes": ("small",), "runs": 1,
        "dtype": "float32", "seed": 7, "budget_s": 600.0,
    }  # fmt: skip
    answer, _ = bench_job.run(BenchJob(**fields | changes), Recorder())
    assert isinstance(answer, Benchmark), answer
    return answer
