"""The magics of a log's notebook, which repeat the recorded steps.

Plan, sizes and runs are parameters of the notebook, as `{plan}` in a line, so that a colleague (or
papermill) can run the whole log with other values. A step that differs from the parameters has its
own values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from triton_magics import languages
from triton_magics.model import (
    Benchmark,
    KernelSource,
    Profile,
    Status,
    Sweep,
    Validation,
    shape_text,
    short,
    version_name,
)
from triton_magics.next_step import NextStep
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.phrase import Phrase
from triton_magics.rendering.views.words import request_arguments

_QUOTED_PARAMETER = re.compile(r"'(\{\w+\})'")


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


def kernel_cell(
    source: KernelSource, phrase: Phrase, *, technique: str | None = None, fails: bool = False
) -> str:
    """Return the cell that writes this version again: its magic, then the code byte for byte.

    Args:
        source: an attempt.
        phrase: writes a step as a magic.
        technique: the optimisation that it tries.
        fails: the attempt did not compile or was replaced, so an error must not stop the run.
    """
    has_default_name = version_name(source.number) == source.version
    arguments: dict[str, object] = {
        "op": source.op,
        "version": short(source.version) if has_default_name else source.version,
        "replay": True,
    }
    if source.language != languages.DEFAULT:
        arguments["type"] = source.language
    if source.entry != f"triton_{source.op}":
        arguments["entry"] = source.entry
    if technique:
        arguments["technique"] = " ".join(technique.split())
    return f"{_line(phrase, 'kernel', arguments, fails=fails)}\n{source.source}"


def validate_line(
    verdict: Validation | None, version: VersionLog, parameters: Parameters, phrase: Phrase
) -> str:
    """Return the magic that validates a version with the recorded plan and seed."""
    arguments: dict[str, object] = {
        "op": version.source.op,
        "version": short(version.version),
        "plan": "{plan}",
    }
    if verdict is None:
        return _line(phrase, "validate", arguments)
    if verdict.plan != parameters.plan:
        arguments["plan"] = verdict.plan
    arguments |= {"seed": verdict.seed, **request_arguments(verdict.request)}
    return _line(phrase, "validate", arguments, fails=not verdict.passed)


def sweep_line(value: Sweep, phrase: Phrase) -> str:
    """Return the magic that repeats a sweep, without writing its best settings as a version."""
    arguments = {
        "op": value.op,
        "version": short(value.version),
        "knobs": value.knobs,
        "size": value.size,
        "seed": value.seed,
        "hot": not value.cold,
        **_dtype(value.dtype),
    }
    return _line(phrase, "sweep", arguments, fails=True)


def profile_line(value: Profile, phrase: Phrase) -> str:
    """Return the magic that repeats a profile."""
    case, other = value.case, value.against
    arguments = {
        "op": value.op,
        "version": short(value.version),
        "size": case.size or shape_text(case.shape),
        "dtype": case.dtype,
        "against": short(other.version) if other else None,
        "seed": case.seed,
    }
    return _line(phrase, "profile", arguments, fails=True)


def bench_line(value: Benchmark, log: LogInput, parameters: Parameters) -> str:
    """Return the magic that repeats a benchmark with the same versions and baselines."""
    sizes = ",".join(value.sizes)
    all_versions = len(value.versions) == len(log.versions)
    others = [p for p in value.providers if p not in ("torch", *value.versions)]
    arguments = {
        "op": log.op,
        "versions": () if all_versions else tuple(map(short, value.versions)),
        "sizes": ("{sizes}",) if sizes == parameters.sizes else value.sizes,
        "runs": "{runs}" if value.runs == parameters.runs else value.runs,
        "seed": value.seed,
        "against": tuple(short(p) for p in value.against) or tuple(others),
        "hot": not value.cold,
        "census": bool(value.census),
        **_dtype(value.dtype),
        **({"timer": value.clock} if value.clock in ("graph", "launch") else {}),
    }
    return _line(log.phrase, "bench", arguments, fails=value.status is not Status.PASSED)


def _dtype(dtype: str) -> dict[str, str]:
    return {} if dtype == "float32" else {"dtype": dtype}


def _line(
    phrase: Phrase, verb: str, arguments: Mapping[str, object], *, fails: bool = False
) -> str:
    """Return the magic of a step; a parameter of the notebook stands without quotes."""
    line = _QUOTED_PARAMETER.sub(r"\1", phrase(NextStep(verb, arguments)))
    return f"{line} --no-raise" if fails else line
