"""The lines of a log's notebook: what was done, as one types it, to be done again.

Plan, sizes and runs stand in the notebook's parameters, as `{plan}` in a line, so that a colleague
(or papermill) may run the whole log at another price. What was done otherwise than the parameters
say keeps its own words.
"""

from __future__ import annotations

import shlex
from typing import NamedTuple

from triton_magics.model import (
    Benchmark,
    KernelSource,
    Status,
    Sweep,
    Validation,
    short,
    version_name,
)
from triton_magics.report.log_input import LogInput, VersionLog

_SIZES = "small,medium,large"


class Parameters(NamedTuple):
    """What the cells below are run with, unless somebody says otherwise."""

    plan: str
    sizes: str
    runs: int
    budget_s: float

    @classmethod
    def of(cls, given: LogInput) -> Parameters:
        """Those that most of the log was made with: of its first verdict, of its main benchmark."""
        verdicts = [v for version in given.versions for v in version.validations]
        measured = given.benchmark
        return cls(
            plan=verdicts[0].plan if verdicts else "full",
            sizes=",".join(measured.sizes) if measured else _SIZES,
            runs=measured.runs if measured else 10,
            budget_s=given.budget_s,
        )

    @property
    def cell(self) -> str:
        """The notebook's `parameters` cell; papermill puts its own values below it."""
        return (
            f'plan = "{self.plan}"  # of the validations: full, or quick (fewer cases)\n'
            f'sizes = "{self.sizes}"  # that are timed\n'
            f"runs = {self.runs}  # timed runs at each size\n"
            f"budget_s = {self.budget_s:g}  # seconds for a validation, where there is no GPU"
        )


def setup_cell(op: str, *, own: bool = False) -> str:
    """Loads the magics and opens the op; one of the user's own is opened by its reference."""
    return "%load_ext triton_magics\n%config TritonMagics.validate_budget_s = budget_s" + (
        "" if own else f"\n%triton_op {op} -q"
    )


def kernel_cell(source: KernelSource, *, technique: str | None = None, fails: bool = False) -> str:
    """The cell that writes this version again: its magic, then the code byte for byte.

    Args:
        source: an attempt.
        technique: what it set out to do.
        fails: it did not compile, or was replaced: the run goes on.
    """
    usual = version_name(source.number) == source.version
    words = [
        "%%triton_kernel",
        source.op,
        short(source.version) if usual else source.version,
        *(() if source.entry == f"triton_{source.op}" else ("--entry", source.entry)),
        *(("--technique", shlex.quote(" ".join(technique.split()))) if technique else ()),
        "--replay",
        *(("--no-raise",) if fails else ()),
    ]
    return f"{' '.join(words)}\n{source.source}"


def validate_line(verdict: Validation | None, version: VersionLog, asked: Parameters) -> str:
    """Judges a version as it was judged: the same plan, the same seed."""
    words = ["%triton_validate", version.source.op, short(version.version)]
    if verdict is None:
        return " ".join([*words, "--cases {plan}"])
    plan = "{plan}" if verdict.plan == asked.plan else verdict.plan
    words += [f"--cases {plan}", f"--seed {verdict.seed}", *verdict.options]
    return " ".join(words if verdict.passed else [*words, "--no-raise"])


def sweep_line(value: Sweep) -> str:
    """Tries the same settings again; what it found then is a version already."""
    words = [
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
    return " ".join(words)


def bench_line(value: Benchmark, given: LogInput, asked: Parameters) -> str:
    """Times what was timed, against whom it was timed."""
    sizes = ",".join(value.sizes)
    every = len(value.versions) == len(given.versions)
    others = [p for p in value.providers if p not in ("torch", *value.versions)]
    against = [short(p) for p in value.against] or others
    words = [
        "%triton_bench",
        given.op,
        *(() if every else map(short, value.versions)),
        f"--sizes {'{sizes}' if sizes == asked.sizes else sizes}",
        f"--runs {'{runs}' if value.runs == asked.runs else value.runs}",
        f"--seed {value.seed}",
        *(() if value.dtype == "float32" else (f"--dtype {value.dtype}",)),
        *(f"--against {shlex.quote(name)}" for name in against),
        *(() if value.cold else ("--hot",)),
        *((f"--timer {value.clock}",) if value.clock in ("graph", "launch") else ()),
        *(("--census",) if value.census else ()),
        *(() if value.status is Status.PASSED else ("--no-raise",)),
    ]
    return " ".join(words)
