"""The magics of a log's notebook, which repeat the recorded steps.

Plan, sizes and runs are parameters of the notebook, as `{plan}` in a line, so that a colleague (or
papermill) can run the whole log with other values. A step that differs from the parameters has its
own values.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from triton_magics import languages
from triton_magics.model import (
    Benchmark,
    KernelSource,
    Status,
    Sweep,
    Validation,
    ValidationRequest,
    shape_text,
    short,
    version_name,
)
from triton_magics.rendering.log_input import LogInput, VersionLog


class Parameters(NamedTuple):
    """Defaults of the notebook's parameters cell."""

    plan: str
    sizes: str
    runs: int
    budget_s: float

    @classmethod
    def of(cls, log: LogInput) -> Parameters:
        """Return the values of the log's first validation and main benchmark."""
        verdicts = [v for version in log.versions for v in version.validations]
        measured = log.benchmark
        return cls(
            plan=verdicts[0].plan if verdicts else "full",
            sizes=",".join(measured.sizes) if measured else ",".join(log.facts.sizes),
            runs=measured.runs if measured else 10,
            budget_s=log.budget_s,
        )

    @property
    def cell(self) -> str:
        """Return the notebook's `parameters` cell; papermill inserts its own values below it."""
        return (
            f'plan = "{self.plan}"  # plan of the validations: full, or quick (fewer cases)\n'
            f'sizes = "{self.sizes}"  # sizes of the benchmarks\n'
            f"runs = {self.runs}  # timed runs at each size\n"
            f"budget_s = {self.budget_s:g}  # seconds for a validation without a GPU"
        )


def setup_cell(op: str, *, own: bool = False) -> str:
    """Return the cell that loads the magics and opens the op.

    A user-defined op (`own`) is opened by its reference instead.
    """
    return "%load_ext triton_magics\n%config TritonMagics.validate_budget_s = budget_s" + (
        "" if own else f"\n%triton_op {op} -q"
    )


def kernel_cell(source: KernelSource, *, technique: str | None = None, fails: bool = False) -> str:
    """Return the cell that writes this version again: its magic, then the code byte for byte.

    Args:
        source: an attempt.
        technique: the optimisation that it tries.
        fails: the attempt did not compile or was replaced, so an error must not stop the run.
    """
    has_default_name = version_name(source.number) == source.version
    parts = [
        "%%triton_kernel",
        source.op,
        short(source.version) if has_default_name else source.version,
        *(() if source.language == languages.DEFAULT else ("--type", source.language)),
        *(() if source.entry == f"triton_{source.op}" else ("--entry", source.entry)),
        *(("--technique", shlex.quote(" ".join(technique.split()))) if technique else ()),
        "--replay",
        *(("--no-raise",) if fails else ()),
    ]
    return f"{' '.join(parts)}\n{source.source}"


def validate_line(verdict: Validation | None, version: VersionLog, parameters: Parameters) -> str:
    """Return the magic that validates a version with the recorded plan and seed."""
    parts = ["%triton_validate", version.source.op, short(version.version)]
    if verdict is None:
        return " ".join([*parts, "--cases {plan}"])
    plan = "{plan}" if verdict.plan == parameters.plan else verdict.plan
    parts += [f"--cases {plan}", f"--seed {verdict.seed}", *request_options(verdict.request)]
    return " ".join(parts if verdict.passed else [*parts, "--no-raise"])


def request_options(request: ValidationRequest) -> tuple[str, ...]:
    """Return the requested options beside plan and seed, as they are typed."""
    tolerances = (("--rtol", request.rtol), ("--atol", request.atol))
    return (
        *((f"--dtype {','.join(request.dtypes)}",) if request.dtypes else ()),
        *(f"{flag} {value:g}" for flag, value in tolerances if value is not None),
        *(f"--shape {shape_text(shape)}" for shape in request.shapes),
    )


def sweep_line(value: Sweep) -> str:
    """Return the magic that repeats a sweep, without writing its best settings as a version."""
    parts = [
        "%triton_sweep",
        value.op,
        short(value.version),
        *(f"{name}={','.join(map(str, values))}" for name, values in value.knobs.items()),
        f"--size {value.size}",
        f"--seed {value.seed}",
        *(() if value.dtype == "float32" else (f"--dtype {value.dtype}",)),
        *(() if value.cold else ("--hot",)),
        "--no-raise",
    ]
    return " ".join(parts)


def bench_line(value: Benchmark, log: LogInput, parameters: Parameters) -> str:
    """Return the magic that repeats a benchmark with the same versions and baselines."""
    sizes = ",".join(value.sizes)
    all_versions = len(value.versions) == len(log.versions)
    others = [p for p in value.providers if p not in ("torch", *value.versions)]
    against = [short(p) for p in value.against] or others
    parts = [
        "%triton_bench",
        log.op,
        *(() if all_versions else map(short, value.versions)),
        f"--sizes {'{sizes}' if sizes == parameters.sizes else sizes}",
        f"--runs {'{runs}' if value.runs == parameters.runs else value.runs}",
        f"--seed {value.seed}",
        *(() if value.dtype == "float32" else (f"--dtype {value.dtype}",)),
        *(f"--against {shlex.quote(name)}" for name in against),
        *(() if value.cold else ("--hot",)),
        *((f"--timer {value.clock}",) if value.clock in ("graph", "launch") else ()),
        *(("--census",) if value.census else ()),
        *(() if value.status is Status.PASSED else ("--no-raise",)),
    ]
    return " ".join(parts)
