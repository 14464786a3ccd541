"""The input of a development log, without paths and durations of the machine."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from triton_magics.model import (
    Benchmark,
    Best,
    Compilation,
    Environment,
    KernelSource,
    OpFacts,
    OpState,
    Profile,
    Sweep,
    Technique,
    Validation,
    Value,
)
from triton_magics.rendering.phrase import Phrase, plain
from triton_magics.rendering.plot_kinds import AnyPlot, draw_plot


class Picture(NamedTuple):
    """A plot of a result, with its kind and a description in words."""

    result: Benchmark | Sweep | Profile
    name: AnyPlot
    alt: str
    png: bytes


_ABSOLUTE = re.compile(r"(?<![\w.~)\]}/<])/(?:[^\s/:'\"`,;()]+/)+(?=[^\s/:'\"`,;()])")
V = TypeVar("V", bound=Value)


@dataclass(frozen=True)
class VersionLog:
    """Sources and results of one version.

    Attributes:
        version: full name.
        attempts: every saved source, oldest first; at least one.
        validations: of any of its attempts, oldest first.
        compilations: of any of its attempts, oldest first.
        benchmark: the newest one that timed the version.
        technique: the optimisation that it tries, in words.
        sweep, profile: the newest one of exactly the current code.
        notes: texts in Markdown about the version, oldest first.
    """

    version: str
    attempts: tuple[KernelSource, ...]
    validations: tuple[Validation, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    benchmark: Benchmark | None = None
    technique: str | None = None
    sweep: Sweep | None = None
    profile: Profile | None = None
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> KernelSource:
        """Return the newest attempt: the current code of the version."""
        return self.attempts[-1]

    @property
    def replaced_attempts(self) -> tuple[KernelSource, ...]:
        """Return the attempts that were replaced."""
        return self.attempts[:-1]

    def validation(self, source: KernelSource) -> Validation | None:
        """Return the newest verdict on exactly this source."""
        hits = [v for v in self.validations if v.sha256 == source.sha256]
        return hits[-1] if hits else None

    def compilation(self, source: KernelSource) -> Compilation | None:
        """Return the newest compilation of exactly this source."""
        hits = [c for c in self.compilations if c.sha256 == source.sha256]
        verdict = self.validation(source)
        return hits[-1] if hits else verdict.compilation if verdict else None


@dataclass(frozen=True)
class LogInput:
    """The whole input of a log; the same input gives the same log, byte for byte.

    Attributes:
        facts: the op.
        techniques: those that fit the op.
        state: the state of the op.
        versions: in the order of their numbers.
        best: the version to ship, if one was chosen.
        environment: machine and software of the results.
        notes: forced steps and resets, each with its reason.
        phrase: writes a next step; as a magic, for the log is a notebook too.
        reference: the cell of the user's own op, so that the notebook can be run.
        analysis: texts in Markdown about the op, oldest first.
        budget_s: what the interpreter may spend on a validation, where the log is run again.
    """

    facts: OpFacts
    state: OpState
    techniques: tuple[Technique, ...] = ()
    versions: tuple[VersionLog, ...] = ()
    best: Best | None = None
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    phrase: Phrase = plain
    reference: str | None = None
    analysis: tuple[str, ...] = ()
    budget_s: float = 20.0

    @property
    def op(self) -> str:
        """Return the op's name."""
        return self.facts.name

    @cached_property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """Return each benchmark once, passed ones first, then by number of versions."""
        benchmarks = [v.benchmark for v in self.versions if v.benchmark]
        unique = [b for i, b in enumerate(benchmarks) if b not in benchmarks[:i]]
        return tuple(sorted(unique, key=lambda b: (not b.passed, -len(b.versions))))

    @cached_property
    def clean(self) -> LogInput:
        """Return the same input without machine paths and durations, for a file under review."""
        return _clean_log(self)

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """Return the plots of the log, each drawn once for all files that show it.

        Speedups of each benchmark, times of the main benchmark, a heat map of each sweep, the
        roofline of each profile.
        """
        plots: list[tuple[Benchmark | Sweep | Profile, AnyPlot]] = [
            (v, "speedup") for v in self.benchmarks
        ]
        plots += [(value, "times") for value in self.benchmarks[:1]]
        plots += [(v.sweep, "sweep") for v in self.versions if v.sweep]
        plots += [(v.profile, "profile") for v in self.versions if v.profile]
        images = ((value, name, draw_plot(value, name)) for value, name in plots)
        return tuple(Picture(value, name, p.alt, p.png) for value, name, p in images if p)

    @property
    def benchmark(self) -> Benchmark | None:
        """Return the main benchmark, which the choice of the best version uses."""
        return self.benchmarks[0] if self.benchmarks else None

    def current_benchmark(self, version: VersionLog) -> Benchmark | None:
        """Return the benchmark that timed exactly the current code of the version."""
        benchmark = version.benchmark
        if not benchmark or version.version not in benchmark.versions:
            return None
        timed = benchmark.sha256s[benchmark.versions.index(version.version)]
        return benchmark if timed == version.source.sha256 else None


def _clean_log(log: LogInput) -> LogInput:
    return dataclasses.replace(
        log,
        state=strip_machine_details(log.state),
        versions=tuple(_clean_version(v) for v in log.versions),
        best=strip_machine_details(log.best) if log.best else None,
        notes=tuple(shorten_paths(note) for note in log.notes),
        analysis=tuple(shorten_paths(text) for text in log.analysis),
    )


def _clean_version(version: VersionLog) -> VersionLog:
    return dataclasses.replace(
        version,
        attempts=tuple(strip_machine_details(a) for a in version.attempts),
        validations=tuple(strip_machine_details(v) for v in version.validations),
        compilations=tuple(strip_machine_details(c) for c in version.compilations),
        benchmark=strip_machine_details(version.benchmark) if version.benchmark else None,
        sweep=strip_machine_details(version.sweep) if version.sweep else None,
        profile=strip_machine_details(version.profile) if version.profile else None,
        notes=tuple(shorten_paths(text) for text in version.notes),
    )


def strip_machine_details(value: V) -> V:
    """Return the value without machine paths and durations, which would clutter a review.

    Also removes tracebacks and printed output: they contain paths, and the error has the message.
    """
    changes: dict[str, object] = {}
    for name in type(value).model_fields:
        field_value = getattr(value, name)
        if name in ("traceback", "output") and isinstance(field_value, str):
            changes[name] = ""
        elif name == "duration_s":
            changes[name] = None
        elif not (name == "source" and isinstance(field_value, str)):  # code stays byte for byte
            changes[name] = _strip_field(field_value)
    return value.evolve(**changes)


def _strip_field(field_value: object) -> object:
    if isinstance(field_value, Value):
        return strip_machine_details(field_value)
    if type(field_value) is str:  # not a member of an enum
        return shorten_paths(field_value)
    if isinstance(field_value, tuple):
        return tuple(_strip_field(item) for item in field_value)
    return field_value


def shorten_paths(text: str) -> str:
    """Cut each absolute path to `kernels/` or `logs/` and the rest, else to its file name."""
    return _ABSOLUTE.sub(_relative_part, text)


def _relative_part(match: re.Match[str]) -> str:
    parts = match[0].split("/")
    at = next((i for i, part in enumerate(parts) if part in ("kernels", "logs")), len(parts) - 1)
    return "/".join(parts[at:])
