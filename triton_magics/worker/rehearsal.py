"""A whole job in small, before the first real one: what loads on first use is loaded by then.

On an H200 the first validation of a process takes 3.8 s and its first benchmark 2.5 s longer than
the second; a standby that has rehearsed has that behind it.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path

import torch

from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, CompileJob, OpRef, ValidateJob, VersionRef
from triton_magics.model import SIZES, Case
from triton_magics.worker import bench, validate
from triton_magics.worker import compile as compiling
from triton_magics.worker.load import compile_cache, load_version
from triton_magics.worker.report import Reporter
from triton_magics.worker.subject import Subject

KERNEL = Path(__file__).with_name("rehearsal_kernel.py")
OP = OpRef(name="softmax")


class Silent(Reporter):
    """Tells nobody."""

    def __init__(self) -> None:
        super().__init__(lambda frame: None, nonce="")


def _version() -> VersionRef:
    return VersionRef(
        version="v1_baseline",
        attempt=1,
        path=str(KERNEL),
        sha256=hashlib.sha256(KERNEL.read_bytes()).hexdigest(),
        entry="triton_softmax",
        header_lines=0,
        cell_offset=0,
        shown_path=KERNEL.name,
    )


def rehearse(mode: str) -> None:
    """Validates and times, or compiles, a kernel of our own.

    Raises:
        RuntimeError: it did not pass: nothing here can be trusted.
    """
    if mode == "compiler":
        compiling.run(CompileJob(op=OP, version=_version(), sizes=("small",)), Silent())
        return
    device = torch.device("cuda", 0) if mode == "gpu" else torch.device("cpu")
    with compile_cache((_version(),)) if mode == "gpu" else nullcontext():  # 4 s on an H200
        _validate(device)
        if mode == "gpu":
            _time()
            torch.cuda.empty_cache()


def _validate(device: torch.device) -> None:
    job = ValidateJob(op=OP, version=_version(), seed=0)
    subject = Subject(ops.load(OP.name), load_version(job.version), job, device, KERNEL.read_text())
    shape = (64, 4096) if device.type == "cuda" else (8, 8)
    for dtype in ("float32", "float16"):
        result, _ = validate.run_case(subject, Case(shape=shape, dtype=dtype, seed=0))
        if result.status.failed:
            said = result.error.message if result.error else result.reason
            raise RuntimeError(f"the rehearsal failed on {device}: {said}")


def _time() -> None:
    job = BenchJob(
        op=OP, versions=(_version(),), sizes=SIZES, runs=2, dtype="float32", seed=0, budget_s=0
    )
    versions = (load_version(job.versions[0]),)
    bench.measure(job, ops.load(OP.name), versions, Silent(), known=None)
