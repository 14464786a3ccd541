"""Compile a version for a GPU that need not be there, and read what the compiler made of it.

The user's whole wrapper runs, on tensors without memory and against a driver that launches nothing;
each `kernel[grid](...)` is compiled for the target and its grid and resources are kept.
"""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import triton

from triton_magics import ops
from triton_magics.engine.protocol import Answer, CompileJob
from triton_magics.model import Case, Compilation, KernelError, KernelResources, Status
from triton_magics.worker.cases import make_pristine
from triton_magics.worker.load import (
    LoadError,
    compile_cache,
    explain,
    load_op,
    load_version,
    raised_in,
)
from triton_magics.worker.occupancy import LIMITS, Occupancy, occupancy, waves
from triton_magics.worker.pretend import SM_COUNT, StubDriver, pretending
from triton_magics.worker.report import Reporter

_USAGE = re.compile(r"REG:(\d+)\s+STACK:(\d+)")
_COMPILER = ("CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure")
META = torch.device("meta")


@dataclass
class Compiled:
    """What was compiled and would have been launched, at the size being looked at."""

    target: int
    size: str = ""
    usage: dict[str, tuple[int, int]] = field(default_factory=dict)
    kernels: dict[tuple[str, str], KernelResources] = field(default_factory=dict)

    def load(self, name: str, binary: bytes) -> tuple[int, int]:
        """Registers and spilled words of a kernel's binary."""
        registers, stack = resource_usage(binary)
        self.usage[name] = (registers, stack)
        return registers, stack // 4

    def launched(self, metadata: Any, grid: tuple[int, ...]) -> None:
        """One launch that did not happen."""
        registers, stack = self.usage.get(metadata.name, (0, 0))
        seen = occupancy(
            self.target,
            registers=registers,
            num_warps=metadata.num_warps,
            shared_bytes=metadata.shared,
        )
        blocks = tuple(int(n) for n in grid)
        known = seen if registers else None
        self.kernels[(metadata.name, self.size)] = KernelResources(
            name=metadata.name,
            size=self.size,
            grid=blocks,
            num_warps=metadata.num_warps,
            num_stages=getattr(metadata, "num_stages", None),
            registers=registers or None,
            spill_bytes=stack if registers else None,
            shared_bytes=metadata.shared,
            occupancy_pct=known.percent if known else None,
            limiter=known.limiter if known else None,
            waves=self._waves(known, blocks, metadata.num_warps) if known else None,
            sms=SM_COUNT,
        )

    def _waves(self, seen: Occupancy, grid: tuple[int, ...], num_warps: int) -> float | None:
        blocks = math.prod(grid)
        return waves(self.target, seen, blocks=blocks, num_warps=num_warps, sms=SM_COUNT)


def resource_usage(binary: bytes) -> tuple[int, int]:
    """Registers per thread and stack bytes of a cubin; (0, 0) if the tool is not there.

    Source: `cuobjdump --dump-resource-usage`, which Triton's wheel carries.
    """
    tool = triton.knobs.nvidia.cuobjdump.path
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        told = subprocess.run(
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=False
        )
    found = _USAGE.search(told.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def run(job: CompileJob, report: Reporter) -> tuple[Answer, bool]:
    """Compiles every kernel that the wrapper launches at the given sizes."""
    started = time.monotonic()
    op = load_op(job.op)
    seen = Compiled(job.target)
    triton.runtime.driver.set_active(StubDriver(job.target, seen.load, seen.launched))
    base = Compilation(
        op=job.op.name,
        version=job.version.version,
        attempt=job.version.attempt,
        sha256=job.version.sha256,
        status=Status.PASSED,
        target=f"sm_{job.target}",
    )
    error, note = None, None
    with compile_cache((job.version,)):
        try:
            with pretending(META, job.target):
                version = load_version(job.version)
            for size in job.sizes:
                report.stage(f"compiling for sm_{job.target}, {size}", patience_s=job.compile_s)
                seen.size = size
                _call(version.call, op, job, size)
        except LoadError as raised:
            error = explain(raised, job.version)
        except BaseException as raised:  # noqa: BLE001 (sys.exit() too is the version's result)
            told = explain(raised, job.version)
            if told.kind in _COMPILER or "ptxas" in told.message:
                error = told
            else:
                note = _why_not_ahead(told, raised_in(raised, job.version.path))
    update = {
        "status": Status.COMPILE_ERROR if error else Status.PASSED,
        "error": error,
        "kernels": tuple(seen.kernels.values()),
        "note": note or _too_much_shared(seen),
        "duration_s": time.monotonic() - started,
    }
    return base.model_copy(update=update), False


def _call(call: Callable[..., Any], op: ops.Op, job: CompileJob, size: str) -> None:
    inputs = _meta_inputs(op, Case(shape=op.sizes[size], dtype=job.dtype, seed=1))
    with torch.no_grad(), pretending(META, job.target):
        call(*inputs)


def _meta_inputs(op: ops.Op, case: Case) -> tuple[Any, ...]:
    """Inputs without memory; made on the CPU first where an op looks at its random numbers."""
    try:
        generator = torch.Generator()
        made = op.make_inputs(case.shape, getattr(torch, case.dtype), META, generator)
    except (RuntimeError, NotImplementedError):
        made = make_pristine(op, case, torch.device("cpu"))
    return tuple(x.to(META) if isinstance(x, torch.Tensor) else x for x in made)


def _why_not_ahead(error: KernelError, refused: bool) -> str:
    if refused:
        return f"not compiled ahead: the wrapper refuses this input ({error.message})"
    return f"not compiled ahead: the wrapper needs real data ({error.kind}: {error.message[:200]})"


def _too_much_shared(seen: Compiled) -> str | None:
    limits = LIMITS.get(seen.target)
    for kernel in seen.kernels.values():
        if limits and (kernel.shared_bytes or 0) > limits.block_shared_bytes:
            return (
                f"{kernel.name} needs {kernel.shared_bytes} bytes of shared memory a block, "
                f"sm_{seen.target} has {limits.block_shared_bytes}: it will not launch"
            )
    return None
