"""Versions from files, and single cases run on them."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from triton_magics import operators
from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import one_case, validate_job
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, Configuration, Validation

KERNELS = Path(__file__).parent.parent / "faults" / "kernels"
CPU = torch.device("cpu")


@dataclass
class Recorder:
    """Takes what a worker reports."""

    stages: list[str] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    plans: list[tuple[CaseResult, ...]] = field(default_factory=list)
    timings: list[object] = field(default_factory=list)
    configurations: list[Configuration] = field(default_factory=list)
    compilations: list[object] = field(default_factory=list)

    def stage(
        self,
        text: str,
        done: int = 0,
        total: int = 0,
        patience_s: float = 20.0,
        *,
        subject: object = None,
    ) -> None:
        self.stages.append(text)

    @contextmanager
    def own_work(self, text: str, patience_s: float) -> Iterator[None]:
        self.stage(text)
        yield

    def waiting(self, text: str) -> None:
        self.stage(text)

    def plan(self, cases: tuple[CaseResult, ...]) -> None:
        self.plans.append(cases)

    def case(self, result: CaseResult, *, budget_share: float = 0.0) -> None:
        self.cases.append(result)

    def timing(self, timing: object) -> None:
        self.timings.append(timing)

    def configuration(self, configuration: Configuration) -> None:
        self.configurations.append(configuration)

    def compilation(self, compilation: object) -> None:
        self.compilations.append(compilation)

    def environment(self, environment: object) -> None:
        pass


def field_of(path: Path, word: str) -> str:
    """Return the `op`, `status` or other field of a kernel's docstring."""
    match = re.search(rf"^{word}: (\w+)$", path.read_text(), re.M)
    assert match, f"{path.name} has no {word} in its docstring"
    return match[1]


def version_of(path: Path, op: str) -> VersionRef:
    """Return a kernel's file as a version with an empty header."""
    text = path.read_text()
    return VersionRef(
        version="v1_baseline",
        attempt=1,
        source=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        entry=f"triton_{op}",
        header_lines=0,
        cell_offset=1,
        shown_path=f"kernels/{op}/v1_baseline.py",
    )


def job_for(path: Path, **changes: object) -> ValidateJob:
    """Return a validation job of a kernel's file."""
    op = field_of(path, "op")
    fields = {"op": OpRef(name=op), "version": version_of(path, op), "seed": 7, **changes}
    return ValidateJob(**fields)


@contextmanager
def numpy_warnings_ignored() -> Iterator[None]:
    """NaN is an input here, also in all lanes; a worker prints a warning at most."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def run_cases(
    path: Path, *cases: Case, device: torch.device = CPU, **changes: object
) -> list[CaseResult]:
    """Run cases of a kernel's file, one after the other."""
    job = job_for(path, **changes)
    subject = validate_job.Subject(
        operators.load(job.op.name), load_version(job.version), job, device, path.read_text()
    )
    with numpy_warnings_ignored():
        return [one_case.run_case(subject, case)[0] for case in cases]


def run_validation(path: Path, **changes: object) -> Validation:
    """Run the whole validation of a kernel's file."""
    with numpy_warnings_ignored():
        answer, _ = validate_job.run(job_for(path, **changes), Recorder())
    assert isinstance(answer, Validation), answer
    return answer


def cases_for(op: str) -> tuple[Case, ...]:
    """Return a few small cases with hostile values."""
    rank = len(operators.smallest_shape(operators.load(op)))
    shape = {2: (7, 13), 3: (33, 29, 45), 4: (2, 3, 7, 13), 5: (2, 6, 3, 7, 13)}[rank]
    wide = {2: (2, 1025), 3: (5, 65, 80), 4: (1, 2, 5, 129), 5: (1, 4, 2, 5, 129)}[rank]
    cases = [
        Case(shape=shape, dtype="float32", seed=1),
        Case(shape=wide, dtype="float32", seed=2),
        Case(shape=shape, dtype="float32", layouts=(("*", "transposed"),), seed=3),
        Case(shape=shape, dtype="float32", regime="x10", seed=4),
        Case(shape=shape, dtype="float16", seed=5),
    ]
    if rank != 3 and op not in ("sum", "layer_norm"):
        cases.append(Case(shape=shape, dtype="float32", regime="large", seed=6))
    if op == "softmax":
        cases.append(Case(shape=(1, 13), dtype="float32", seed=8))
    if op == "relu":
        cases.append(Case(shape=shape, dtype="float32", special="zeros", seed=10))
        cases.append(Case(shape=(725, 725), dtype="float32", seed=11))
    if op == "layer_norm":
        cases.append(Case(shape=shape, dtype="float32", regime="mean_heavy", seed=7))
    return tuple(cases)
