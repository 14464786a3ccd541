"""Drafts of imported problems: the problem's text, and the constants that make it an op."""

from __future__ import annotations

import math
import pprint
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from triton_magics.execution.job_answers import Findings

Shape = tuple[int, ...]
PRIMES = (7, 13, 5, 11)
BREAK = "\n\n\n"  # between the problem, byte for byte, and what makes it an op
MARK = "# ---- the problem above as an op, written by the import"


class Candidate(NamedTuple):
    """One way to make an op of a problem.

    Attributes:
        dims: dimensions that a shape gives.
        training: the model is in training.
        has_tiny: dimensions of 1 and 2 are checked.
    """

    dims: tuple[str, ...]
    training: bool = True
    has_tiny: bool = True


@dataclass(frozen=True)
class Draft:
    """A problem before a worker has seen it.

    Attributes:
        name: of the op.
        collection: where the problem is from.
        source: its text, which stays as it is.
        setup: lines that make `_problem` of it; `{dims}`, `{training}` and `{names}` stand for
            literals.
        dims: dimensions that may vary, with the problem's values; empty: it has one shape.
        sizes: the shapes to time, by name.
        batch: the dimension that is made smaller where a size needs too much memory.
        tolerance: the problem's own, for a second verdict; empty: it has none.
        shapes: shapes to check; empty: they are derived from `dims`.
        dtypes: of the op.
        constants: more constants of the op, by name.
    """

    name: str
    collection: str
    source: str
    setup: Sequence[str]
    dims: Mapping[str, int]
    sizes: Mapping[str, Shape]
    batch: str | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    shapes: Sequence[Shape] = ()
    dtypes: Sequence[str] = ("float32",)
    constants: Mapping[str, Any] = field(default_factory=dict)

    def with_name(self, name: str) -> Draft:
        """Return the draft of an op of another name."""
        return replace(self, name=name)

    def candidate_dims(self) -> Iterator[tuple[str, ...]]:
        """Yield sets of dimensions that a shape may give, the most useful first."""
        if len(self.dims) > 1 or (self.dims and self.batch is None):
            yield tuple(self.dims)
        if len(self.dims) > 2:
            for fixed in self.dims:
                if fixed != self.batch:
                    yield tuple(name for name in self.dims if name != fixed)
        if self.batch is not None:
            yield (self.batch,)
        yield ()

    def candidates(self) -> Iterator[Candidate]:
        """Yield the ways to make an op of the problem, the most useful first."""
        has_modes = any("{training}" in line for line in self.setup)
        for training in (True, False) if has_modes else (True,):
            for dims in self.candidate_dims():
                for has_tiny in (True, False) if len(dims) > 1 else (True,):
                    yield Candidate(dims, training, has_tiny)

    def batch_position(self, dims: Sequence[str]) -> int | None:
        """Return the place of the batch in a shape that gives these dimensions."""
        return tuple(dims).index(self.batch) if self.batch in dims else None

    def sizes_for(self, dims: Sequence[str]) -> dict[str, Shape]:
        """Return the sizes as shapes that give only these dimensions."""
        if tuple(dims) == tuple(self.dims):
            return dict(self.sizes)
        return {"given": tuple(self.dims[d] for d in dims) or (1,)}

    def shapes_for(self, dims: Sequence[str], *, has_tiny: bool = True) -> tuple[Shape, ...]:
        """Return shapes to check: awkward ones, and the problem's own with a small batch."""
        if self.shapes and tuple(dims) == tuple(self.dims):
            return tuple(self.shapes)
        rank, place = len(dims), self.batch_position(dims)
        if rank < 2:
            return tuple((n,) for n in (1, 2, 3, 5, 7) if dims)
        batches = {n: (n if place is None else 1 + n % 3) for n in (*range(16, 40), 64)}
        moderate = [
            tuple(batches[n + i] if i == place else n + i for i in range(rank))
            for n in (16, 17, 21, 31)
        ]
        awkward = [
            (1,) * rank,
            tuple(PRIMES[i % 4] for i in range(rank)),
            (1,) * (rank - 1) + (129,),
            (129, *(1,) * (rank - 1)),
            (*(2,) * (rank - 1), 1025),
            tuple(31 + 2 * i for i in range(rank)) if rank == 2 else (16,) * rank,
        ]
        own_values = [self.dims[d] for d in dims]
        own = [tuple(n if i == (place or 0) else g for i, g in enumerate(own_values))
               for n in (1, 2, 3)]  # fmt: skip
        every = dict.fromkeys([*(awkward if has_tiny else moderate), *own])
        return tuple(sorted(every, key=math.prod))

    def write(self, candidate: Candidate) -> str:
        """Return the op's text for a worker that finds out what it accepts."""
        shapes = self.shapes_for(candidate.dims, has_tiny=candidate.has_tiny)
        findings = Findings(sizes=self.sizes_for(candidate.dims), shapes=shapes)
        return self.finish(findings, candidate)

    def finish(self, findings: Findings, candidate: Candidate) -> str:
        """Return the op's text: the problem, then its constants and functions."""
        constants = {
            "SIZES": dict(findings.sizes),
            "SHAPES": tuple(findings.shapes),
            "DTYPES": (findings.dtype,) if findings.dtype else tuple(self.dtypes),
            **({"MUTATES": findings.mutates} if findings.mutates else {}),
            "REGIMES_SKIP": tuple(findings.skip_values),
            "EXTENTS": {},
            "LAYOUTS": ("contiguous",),
            **self.constants,
        }
        if self.tolerance:
            constants["TOLERANCE"] = dict(self.tolerance)
        names = ", ".join(findings.input_names)
        values = {"dims": candidate.dims, "training": candidate.training, "names": names}
        setup = [_fill(line, values) for line in self.setup]
        notes = [f"# {note}" for note in findings.notes]
        if not candidate.training:
            notes += ["# evaluated with eval(): its output is random, or not defined, in training"]
        written = [f"{key} = {_literal(value)}" for key, value in constants.items()]
        lines = [MARK, *notes, *setup, *written, "make_inputs = _problem.make_inputs"]
        lines += ["reference = _problem.reference"]
        return self.source + BREAK + "\n".join(lines) + "\n"


def _fill(line: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", repr(value))
    return line


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=96, sort_dicts=False)
