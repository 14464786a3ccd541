"""A whole job in small, before the first real one: what loads on first use is loaded by then.

On an H200 the first validation of a process takes 3.8 s and its first benchmark 2.5 s longer than
the second; a standby that has rehearsed has that behind it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch

from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, CompileJob, Mode, OpRef, ValidateJob, VersionRef
from triton_magics.model import Case
from triton_magics.worker import bench, compilers, precompile, validate
from triton_magics.worker import compile as compiling
from triton_magics.worker.cases import make_inputs
from triton_magics.worker.launches import Launches
from triton_magics.worker.load import compile_cache, load_version
from triton_magics.worker.report import Reporter
from triton_magics.worker.subject import Subject, guarded_call

KERNEL = Path(__file__).with_name("rehearsal_kernel.py")
OP = OpRef(name="softmax")
COMPILERS = 4  # that rehearse: 13 MiB each; a version's own sizes and the largest others are theirs


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


def rehearse(mode: Mode, wanted: Callable[[], bool]) -> bool:
    """Validates and times, or compiles, a kernel of our own; whether it came to its end.

    Args:
        wanted: asked before each step whether something better is to be done.

    Raises:
        RuntimeError: it did not pass: nothing here can be trusted.
    """
    with compile_cache((_version(),)) if mode == "gpu" else nullcontext():  # 4 s on an H200
        done = not any(wanted() or step() for step in STEPS[mode])
    if mode == "gpu":
        torch.cuda.empty_cache()
    return done


def _compile() -> None:
    compiling.run(CompileJob(op=OP, version=_version(), sizes=("small",)), Silent())


def _compile_beside() -> None:
    form = ((64, 4096), "float32")
    order = precompile.order(OP, _version(), form, precompile.Target())
    compilers.rehearse({**order, "rehearsal": True}, COMPILERS)


def _subject(device: str) -> Subject:
    job, where = ValidateJob(op=OP, version=_version(), seed=0), torch.device(device)
    return Subject(ops.load(OP.name), load_version(job.version), job, where, KERNEL.read_text())


def _call(device: str, shape: tuple[int, ...]) -> None:
    subject, case = _subject(device), Case(shape=shape, dtype="float32", seed=0)
    guarded_call(subject, make_inputs(subject.op, case, subject.device), Launches())


def _validate(device: str, shape: tuple[int, ...], dtype: str) -> None:
    result, _ = validate.run_case(_subject(device), Case(shape=shape, dtype=dtype, seed=0))
    if result.status.failed:
        said = result.error.message if result.error else result.reason
        raise RuntimeError(f"the rehearsal failed on {device}: {said}")


def _time(*sizes: str) -> None:
    job = BenchJob(
        op=OP, versions=(_version(),), sizes=sizes, runs=2, dtype="float32", seed=0, budget_s=0
    )
    versions = (load_version(job.versions[0]),)
    bench.measure(job, ops.load(OP.name), versions, Silent(), known=None)


# What is done in each mode: steps that are short, for a job may come at any time.
STEPS: dict[Mode, tuple[Callable[[], None], ...]] = {
    "compiler": (_compile, _compile_beside),
    "interpreter": (
        partial(_validate, "cpu", (8, 8), "float32"),
        partial(_validate, "cpu", (8, 8), "float16"),
    ),
    "gpu": (
        partial(_call, "cuda:0", (64, 4096)),
        partial(_validate, "cuda:0", (64, 4096), "float32"),
        partial(_validate, "cuda:0", (64, 4096), "float16"),
        partial(_time, "small"),
        partial(_time, "medium", "large"),
    ),
}
