"""A survey of the launches of a version: how they look for many inputs without memory."""

from __future__ import annotations

import dis
import functools
import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from types import CodeType, FrameType
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import job_sources, layouts
from triton_magics.harness.correctness.case_inputs import layout_of_input, make_meta
from triton_magics.harness.correctness.case_values import (
    find_parts,
    join_inputs,
    shape_of_whole,
    split_in_parts,
    view_inputs,
)
from triton_magics.harness.correctness.launch_relations import (
    PATHS,
    Kind,
    LaunchSurvey,
    Relation,
    find_relations,
)
from triton_magics.harness.correctness.offered_cases import declared_lengths, neighbors
from triton_magics.harness.correctness.special_values import SHARED_VALUES, special_of
from triton_magics.harness.load import LoadedVersion
from triton_magics.harness.process.device import META
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.languages.kernel_compiler import Target
from triton_magics.languages.source_numbers import read_integers_at
from triton_magics.model import Case

SURVEY_WAIT = 2.0  # for it, of its limit of CPU time: beside other work it takes longer
RARE, MAX_VARIED = 12, 24  # cases with a path that few take; cases whose neighbors are called
MAX_VARIED_AT_ONCE = 8  # of each kind, before what they show is looked at
MAX_RELATIONS = 5000  # of a version; a usual one has a hundred
MAX_STEPS = 2000  # of a call of one function

_Step = tuple[CodeType, int, int]  # from one operation of a function to another, by their offsets


def survey_launches(
    version: LoadedVersion, op: operators.Op, cases: Sequence[Case], limit_s: float, target: Target
) -> LaunchSurvey:
    """Call the wrapper for these cases with tensors without memory, and launch nothing.

    Then it is called for neighbors of cases that come to a condition which hardly ever goes the
    other way, or that take a path few take, again and again.

    Call this in a fork: what a version keeps between calls is of no use afterwards, and no driver
    works any more.

    Args:
        version: to call.
        op: its op.
        cases: to make inputs of; their values do not matter.
        limit_s: CPU time after which no further call is made.
        target: the GPU that the wrapper sees. Its own driver does not work in a fork.
    """
    version.runtime.use_target(target)
    survey = _Survey(version, op, target, time.process_time() + limit_s)
    varied: list[tuple[int, int]] = []
    for case in cases:
        survey.call(case)
    declared, source = declared_lengths(op), version.ref.source
    while to_vary := [each for each in survey.to_vary() if each not in varied]:
        for place, line in to_vary[: MAX_VARIED - len(varied)]:
            varied.append((place, line))
            numbers = read_integers_at(source, line)
            for case in neighbors(op, survey.cases[place], declared, numbers):
                survey.call(case)
        if survey.is_late or len(varied) >= MAX_VARIED:
            break
    return LaunchSurvey(
        relations=tuple(survey.places), of_cases=tuple(survey.of_cases),
        programs=tuple(survey.programs), varied=tuple(varied),
    )  # fmt: skip


class _Survey:
    """Calls of a wrapper, and what their launches look like.

    Attributes:
        cases: that it was called for.
        places: of each relation, in the order in which they came up.
        of_cases, programs: of each case, as in `LaunchSurvey`.
    """

    def __init__(
        self, version: LoadedVersion, op: operators.Op, target: Target, until_s: float
    ) -> None:
        """Call nothing yet; until_s is of this process's CPU time."""
        self._version, self._op, self._target, self._until_s = version, op, target, until_s
        self._path = str(job_sources.version_path(version.ref))
        # The cases on each way out of a condition.
        self._ways: dict[tuple[CodeType, int], dict[int, list[int]]] = {}
        self.cases: list[Case] = []
        self.places: dict[Relation, int] = {}
        self.of_cases: list[tuple[int, ...] | None] = []
        self.programs: list[int] = []

    @property
    def is_late(self) -> bool:
        """True once no further call is made."""
        return time.process_time() > self._until_s or len(self.places) > MAX_RELATIONS

    def call(self, case: Case) -> None:
        """Add a case, and call the wrapper for it."""
        steps: set[_Step] = set()
        own, n = (None, 0) if self.is_late else self._survey(case, steps)
        for code, last, here in steps:
            if _is_condition(code, last):
                ways = self._ways.setdefault((code, last), {})
                ways.setdefault(here, []).append(len(self.cases))
        self.cases.append(case)
        self.programs.append(n)
        place_of = self.places.setdefault
        self.of_cases.append(
            None if own is None else tuple(place_of(r, len(self.places)) for r in sorted(own))
        )

    def to_vary(self) -> list[tuple[int, int]]:
        """Return cases by their place, each with the line of a condition, or with 0.

        First come those at a condition with numbers that goes one way always, or but for a few
        cases; then those on paths that few cases take. Such a path has more relations than the few
        show: drawn lengths seldom come to it.
        """
        having: dict[int, list[int]] = {}
        for place, own in enumerate(self.of_cases):
            for i in own or ():
                having.setdefault(i, []).append(place)
        rare = [
            having[i]
            for relation, i in self.places.items()
            if relation.kind in PATHS and len(having[i]) <= RARE
        ]
        smallest = ((place, 0) for own in sorted(rare, key=len) for place in self._smallest(own))
        return [
            each
            for kind in (self._at_conditions(), smallest)
            for each in itertools.islice(dict.fromkeys(kind), MAX_VARIED_AT_ONCE)
        ]

    def _at_conditions(self) -> Iterator[tuple[int, int]]:
        """Yield the smallest case on the usual way out of each such condition, and its line."""
        source = self._version.ref.source
        usual = [
            (sum(len(own) for own in ways.values()) - len(most), most, _lines_of(code)[at])
            for (code, at), ways in self._ways.items()
            for most in [max(ways.values(), key=len)]
        ]
        for n_others, most, line in sorted(usual, key=itemgetter(0)):
            if n_others <= RARE and read_integers_at(source, line):
                yield self._smallest(most)[0], line

    def _smallest(self, places: Sequence[int]) -> list[int]:
        """Return the two smallest cases; if there are such, without lengths of 0 or 1."""
        shapes = {i: self.cases[i].shape for i in places}
        return sorted(shapes, key=lambda i: (min(shapes[i]) < 2, math.prod(shapes[i])))[:2]

    def _survey(self, case: Case, steps: set[_Step]) -> tuple[set[Relation] | None, int]:
        """Return the relations of a call, and its programs; None if it raises, as without data."""
        try:
            inputs = _inputs_without_memory(self._op, case)
            with (
                torch.no_grad(),
                self._version.runtime.list_launches() as launches,
                fake_gpu(META, self._target),
                _record_steps(self._path, steps),
            ):
                self._version.call(*inputs)
        except BaseException:  # noqa: BLE001 (exit() too: the version's own, and no verdict)
            return None, 0
        lengths = {"rows": math.prod(case.shape[:-1]), "elements": math.prod(case.shape)}
        relations = find_relations(launches, lengths) | {_relation(*step) for step in steps}
        programs = [math.prod(launch.grid) for launch in launches]
        if case.special in SHARED_VALUES and any(n > 1 for n in programs):
            relations.add(Relation(Kind.RELATION, f"{case.special}, for several programs"))
        return relations, sum(programs)


def load_meta_functions() -> None:
    """Import what torch imports at the first call without memory, up to a second: before a fork."""
    torch.empty_like(torch.empty(1, device=META)).mean()


@contextmanager
def _record_steps(path: str, steps: set[_Step]) -> Iterator[None]:
    """Add the steps that the functions of a file make.

    Each way out of a condition is another step, also where both are on one line. Of a long loop in
    a function the first steps count.
    """

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        code, last, n = frame.f_code, -1, 0
        if code.co_filename != path:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True

        def step(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last, n
            if event == "opcode":
                here = frame.f_lasti
                steps.add((code, last, here))
                last, n = here, n + 1
                frame.f_trace_opcodes = n < MAX_STEPS
            return step

        return step

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@functools.cache
def _is_condition(code: CodeType, at: int) -> bool:
    """Return whether an operation goes on at one of two places."""
    name = dis.opname[code.co_code[at]] if at >= 0 else ""
    return "JUMP" in name and "IF" in name


@functools.cache
def _relation(code: CodeType, last: int, here: int) -> Relation:
    """Return a step as a relation."""
    lines = _lines_of(code)
    start, end = lines.get(last, code.co_firstlineno), lines[here]
    way = f"line {start} to {end}, operation {last} to {here}"
    kind = Kind.BRANCH if start == end else Kind.LINE
    return Relation(kind, f"{code.co_name}: {way}", end)


@functools.cache
def _lines_of(code: CodeType) -> dict[int, int]:
    """Return the line of each operation of a function."""
    return {
        at: line or code.co_firstlineno
        for start, end, line in code.co_lines()
        for at in range(start, end, 2)
    }


def _inputs_without_memory(op: operators.Op, case: Case) -> tuple[Any, ...]:
    """Return the inputs of a case in their layouts; those that share memory in the case do here."""
    whole = make_meta(op, case)
    scalars = dict(case.scalars)
    inputs: list[Any] = []
    for i, (name, x) in enumerate(zip(op.input_names(len(whole)), whole, strict=True)):
        layout = layout_of_input(op, case, i, name)
        if isinstance(x, torch.Tensor):
            inputs.append(layouts.empty(tuple(x.shape), layout, dtype=x.dtype, device=META))
        else:
            inputs.append(scalars.get(name, x))
    own, special = tuple(inputs), special_of(case.special)
    if special and special.joins:
        return join_inputs(own, special)
    if special and special.is_view:
        return view_inputs(own, own, special)
    if special and special.splits and (parts := find_parts(own, special)):
        dtype, shape = own[next(iter(parts))].dtype, shape_of_whole(own, parts, special)
        whole = torch.empty(shape, dtype=dtype, device=META)
        views = split_in_parts(whole, own, parts, special)
        return tuple(views.get(i, x) for i, x in enumerate(own))
    return own


__all__ = ["SURVEY_WAIT", "load_meta_functions", "survey_launches"]
