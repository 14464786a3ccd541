"""What a development log is made from, and what must not get into it."""

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
    PlotName,
    Sweep,
    Technique,
    Validation,
    Value,
)
from triton_magics.report.pictures import drawn


class Picture(NamedTuple):
    """A plot of a benchmark or a sweep, which one, and what it shows in words."""

    of: Benchmark | Sweep
    name: PlotName
    alt: str
    png: bytes


_ABSOLUTE = re.compile(r"(?<![\w.~)\]}/<])/(?:[^\s/:'\"`,;()]+/)+(?=[^\s/:'\"`,;()])")
V = TypeVar("V", bound=Value)


@dataclass(frozen=True)
class VersionLog:
    """What happened to one version.

    Attributes:
        version: its whole name.
        attempts: every source that was saved for it, oldest first; at least one.
        validations: of any of its attempts, oldest first.
        compilations: of any of its attempts, oldest first.
        benchmark: the newest one that timed it.
        technique: what it set out to do, in words.
        sweep: the newest one over settings of exactly the code that stands.
    """

    version: str
    attempts: tuple[KernelSource, ...]
    validations: tuple[Validation, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    benchmark: Benchmark | None = None
    technique: str | None = None
    sweep: Sweep | None = None

    @property
    def source(self) -> KernelSource:
        """The newest attempt: the code that stands in the version's file."""
        return self.attempts[-1]

    @property
    def earlier(self) -> tuple[KernelSource, ...]:
        """The attempts that were replaced."""
        return self.attempts[:-1]

    def validation(self, source: KernelSource) -> Validation | None:
        """The newest verdict on exactly this source."""
        hits = [v for v in self.validations if v.sha256 == source.sha256]
        return hits[-1] if hits else None

    def compilation(self, source: KernelSource) -> Compilation | None:
        """The newest compilation of exactly this source."""
        hits = [c for c in self.compilations if c.sha256 == source.sha256]
        verdict = self.validation(source)
        return hits[-1] if hits else verdict.compilation if verdict else None


@dataclass(frozen=True)
class LogInput:
    """Everything that a log is made from; the same input gives the same log, to the byte.

    Attributes:
        facts: the op.
        techniques: those that fit the op.
        state: where the op stands.
        versions: in the order of their numbers.
        best: the version to ship, if one was chosen.
        environment: where the results were made.
        notes: forced steps and resets, each with its reason.
        export_command: what writes this log again.
        reference: the cell of the user's own op, so that the notebook can be run.
        budget_s: what the interpreter may spend on a validation, where the log is run again.
    """

    facts: OpFacts
    state: OpState
    techniques: tuple[Technique, ...] = ()
    versions: tuple[VersionLog, ...] = ()
    best: Best | None = None
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    export_command: str = ""
    reference: str | None = None
    budget_s: float = 20.0

    @property
    def op(self) -> str:
        """The op's name."""
        return self.facts.name

    @cached_property
    def benchmarks(self) -> tuple[Benchmark, ...]:
        """Each benchmark once, the one with the most versions first; they are never mixed."""
        found = [v.benchmark for v in self.versions if v.benchmark]
        unique = [b for i, b in enumerate(found) if b not in found[:i]]
        return tuple(sorted(unique, key=lambda b: (not b.passed, -len(b.versions))))

    @cached_property
    def clean(self) -> LogInput:
        """The same, every value of it as it may stand in a file for review."""
        return _cleaned(self)

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """The plots of the log; each is drawn once for every file that shows it.

        The speedups of each benchmark; of the one that the choice rests on the times too; of each
        version's sweep its heat map.
        """
        wanted: list[tuple[Benchmark | Sweep, PlotName]] = [(v, "speedup") for v in self.benchmarks]
        wanted += [(value, "times") for value in self.benchmarks[:1]]
        wanted += [(v.sweep, "sweep") for v in self.versions if v.sweep]
        made = ((value, name, drawn(value, name)) for value, name in wanted)
        return tuple(Picture(value, name, p.alt, p.png) for value, name, p in made if p)

    @property
    def benchmark(self) -> Benchmark | None:
        """The benchmark that the choice rests on."""
        return self.benchmarks[0] if self.benchmarks else None

    def timed_in(self, version: VersionLog) -> Benchmark | None:
        """The benchmark that timed exactly the code that stands in the version's file."""
        found = version.benchmark
        if not found or version.version not in found.versions:
            return None
        timed = found.sha256s[found.versions.index(version.version)]
        return found if timed == version.source.sha256 else None


def _cleaned(given: LogInput) -> LogInput:
    return dataclasses.replace(
        given,
        state=for_log(given.state),
        versions=tuple(_cleaned_version(v) for v in given.versions),
        best=for_log(given.best) if given.best else None,
        notes=tuple(relative(note) for note in given.notes),
        export_command=relative(given.export_command),
    )


def _cleaned_version(version: VersionLog) -> VersionLog:
    return dataclasses.replace(
        version,
        attempts=tuple(for_log(a) for a in version.attempts),
        validations=tuple(for_log(v) for v in version.validations),
        compilations=tuple(for_log(c) for c in version.compilations),
        benchmark=for_log(version.benchmark) if version.benchmark else None,
        sweep=for_log(version.sweep) if version.sweep else None,
    )


def for_log(value: V) -> V:
    """The value without a machine's paths and durations, which have no place in a file for review.

    Tracebacks and printed output go too: they hold paths, and what they say stands in the error.
    """
    changes: dict[str, object] = {}
    for name in type(value).model_fields:
        held = getattr(value, name)
        if name in ("traceback", "output") and isinstance(held, str):
            changes[name] = ""
        elif name == "duration_s":
            changes[name] = None
        elif not (name == "source" and isinstance(held, str)):  # code stays, byte for byte
            changes[name] = _scrubbed(held)
    return value.model_copy(update=changes)


def _scrubbed(held: object) -> object:
    if isinstance(held, Value):
        return for_log(held)
    if type(held) is str:  # not an enum's member
        return relative(held)
    if isinstance(held, tuple):
        return tuple(_scrubbed(item) for item in held)
    return held


def relative(text: str) -> str:
    """The text, each absolute path cut to `kernels/` or `logs/` and what follows, or to a name."""
    return _ABSOLUTE.sub(_kept, text)


def _kept(match: re.Match[str]) -> str:
    parts = match[0].split("/")
    at = next((i for i, part in enumerate(parts) if part in ("kernels", "logs")), len(parts) - 1)
    return "/".join(parts[at:])
