"""Benchmarks of softmax and other ops in this process, run as in a worker."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent.parent / "faults" / "kernels"
OPS = ("softmax", "vector_add", "layer_norm")
SIZES = ("small", "medium", "large")


class Quiet:
    """A reporter that sends nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def version(folder: Path, op: str, name: str, source: str) -> Any:
    """Return a source as a version that a worker can load."""
    from triton_magics.execution.job_refs import VersionRef

    digest = hashlib.sha256(source.encode()).hexdigest()
    return VersionRef(
        version=name, attempt=1, source=source, sha256=digest, entry=f"triton_{op}",
        header_lines=0, cell_offset=0, shown_path=f"{op}_{name}.py",
    )  # fmt: skip


def bench(
    op: str,
    versions: tuple[Any, ...],
    seed: int,
    sizes: tuple[str, ...] = SIZES,
    budget: float = 10.0,
) -> Any:
    """Run one benchmark in this process, as in a worker."""
    from triton_magics.execution.job_refs import OpRef
    from triton_magics.execution.job_requests import BenchJob
    from triton_magics.harness.timing import bench_job as worker

    job = BenchJob(
        op=OpRef(name=op), versions=versions, sizes=sizes, runs=10, dtype="float32", seed=seed,
        budget_s=budget,
    )  # fmt: skip
    benchmark, _ = worker.run(job, Quiet())
    assert benchmark.passed, benchmark
    return benchmark


def right(folder: Path, op: str, name: str = "v1_right") -> Any:
    """Return a correct version of an op."""
    return version(folder, op, name, (KERNELS / f"{op}_right.py").read_text())


def four(folder: Path) -> tuple[Any, ...]:
    """Return the same softmax as four versions."""
    source = (KERNELS / "softmax_right.py").read_text()
    return tuple(version(folder, "softmax", f"v{i}_x", f"{source}\n# {i}\n") for i in range(1, 5))
