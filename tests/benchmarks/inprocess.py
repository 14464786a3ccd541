"""Benchmarks of softmax and others in this process, made as a worker makes them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent.parent / "faults" / "kernels"
OPS = ("softmax", "vector_add", "layer_norm")
SIZES = ("small", "medium", "large")


class Quiet:
    """A reporter that tells nobody."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def version(folder: Path, op: str, name: str, source: str) -> Any:
    """A source as a version that a worker loads."""
    from triton_magics.engine.protocol import VersionRef

    digest = hashlib.sha256(source.encode()).hexdigest()
    path = folder / f"{op}_{name}_{digest[:8]}.py"
    path.write_text(source)
    return VersionRef(
        version=name, attempt=1, path=str(path), sha256=digest, entry=f"triton_{op}",
        header_lines=0, cell_offset=0, shown_path=path.name,
    )  # fmt: skip


def bench(
    op: str,
    versions: tuple[Any, ...],
    seed: int,
    sizes: tuple[str, ...] = SIZES,
    budget: float = 10.0,
) -> Any:
    """One benchmark, in this process, as the worker makes it."""
    from triton_magics.engine.protocol import BenchJob, OpRef
    from triton_magics.worker import bench as worker

    job = BenchJob(
        op=OpRef(name=op), versions=versions, sizes=sizes, runs=10, dtype="float32", seed=seed,
        budget_s=budget,
    )  # fmt: skip
    made, _ = worker.run(job, Quiet())
    assert made.passed, made
    return made


def right(folder: Path, op: str, name: str = "v1_right") -> Any:
    """A correct version of an op."""
    return version(folder, op, name, (KERNELS / f"{op}_right.py").read_text())


def four(folder: Path) -> tuple[Any, ...]:
    """The same softmax in four versions."""
    source = (KERNELS / "softmax_right.py").read_text()
    return tuple(version(folder, "softmax", f"v{i}_x", f"{source}\n# {i}\n") for i in range(1, 5))
