"""Drafts of imported problems: the problem's text, and the constants that make it an op."""

from __future__ import annotations

import math
import pprint
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from triton_magics.execution.job_requests import Findings

Shape = tuple[int, ...]
PRIMES = (7, 13, 5, 11)
ROWS = (1, 3, 2, 127)
MARK = "# ---- the problem above as an op, written by the import"


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
        if self.batch is not None:
            yield (self.batch,)
        yield ()

    def batch_position(self, dims: Sequence[str]) -> int | None:
        """Return the place of the batch in a shape that gives these dimensions."""
        return tuple(dims).index(self.batch) if self.batch in dims else None

    def sizes_for(self, dims: Sequence[str]) -> dict[str, Shape]:
        """Return the sizes as shapes that give only these dimensions."""
        if tuple(dims) == tuple(self.dims):
            return dict(self.sizes)
        return {"given": tuple(self.dims[d] for d in dims) or (1,)}

    def shapes_for(self, dims: Sequence[str]) -> tuple[Shape, ...]:
        """Return shapes to check: awkward ones, and the problem's own with a small batch."""
        if self.shapes and tuple(dims) == tuple(self.dims):
            return tuple(self.shapes)
        if not dims:
            return ()
        rank = len(dims)
        awkward = [
            (1,) * rank,
            tuple(PRIMES[i % 4] for i in range(rank)),
            (1,) * (rank - 1) + (129,),
            (129, *(1,) * (rank - 1)),
            (*(2,) * (rank - 1), 1025),
            tuple(31 + 2 * i for i in range(rank)),
        ]
        own_values = [self.dims[d] for d in dims]
        place = dims.index(self.batch) if self.batch in dims else 0
        own = [tuple(n if i == place else g for i, g in enumerate(own_values)) for n in (1, 2, 3)]
        every = dict.fromkeys([*awkward, *own] if rank > 1 else [(n,) for n in (1, 2, 3, 5, 7)])
        return tuple(sorted(every, key=math.prod))

    def candidates(self) -> Iterator[tuple[tuple[str, ...], bool]]:
        """Yield sets of dimensions, first with the model in training, then evaluated."""
        has_modes = any("{training}" in line for line in self.setup)
        for training in (True, False) if has_modes else (True,):
            for dims in self.candidate_dims():
                yield dims, training

    def write(self, dims: Sequence[str], *, training: bool = True) -> str:
        """Return the op's text for a worker that finds out what it accepts."""
        findings = Findings(sizes=self.sizes_for(dims), shapes=self.shapes_for(dims))
        return self.finish(findings, dims, training=training)

    def finish(self, findings: Findings, dims: Sequence[str], *, training: bool = True) -> str:
        """Return the op's text: the problem, then its constants and functions."""
        constants = {
            "SIZES": dict(findings.sizes),
            "SHAPES": tuple(findings.shapes),
            "DTYPES": tuple(self.dtypes),
            "REGIMES_SKIP": tuple(findings.skip_values),
            "EXTENTS": {},
            "LAYOUTS": ("contiguous",),
            **self.constants,
        }
        if self.tolerance:
            constants["TOLERANCE"] = dict(self.tolerance)
        names = ", ".join(findings.input_names)
        values = {"dims": tuple(dims), "training": training, "names": names}
        setup = [_fill(line, values) for line in self.setup]
        notes = [f"# {note}" for note in findings.notes]
        if not training:
            notes += ["# evaluated with eval(): its output is random, or not defined, in training"]
        written = [f"{key} = {_literal(value)}" for key, value in constants.items()]
        lines = [MARK, *notes, *setup, *written, "make_inputs = _problem.make_inputs"]
        lines += ["reference = _problem.reference"]
        return self.source.rstrip() + "\n\n\n" + "\n".join(lines) + "\n"


def _fill(line: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", repr(value))
    return line


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=96, sort_dicts=False)
