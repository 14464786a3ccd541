"""A survey of the launches of a version: how they look for many inputs without memory."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
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
from triton_magics.model import Case

SURVEY_WAIT = 3.0  # for it, of its limit of CPU time: beside other work it takes longer
RARE, MAX_VARIED = 12, 16  # cases with a path that few take; cases whose neighbors are called
_PATHS = (Kind.PATH, Kind.LINE, Kind.BRANCH)
MAX_RELATIONS = 5000  # of a version; a usual one has a hundred


def survey_launches(
    version: LoadedVersion, op: operators.Op, cases: Sequence[Case], limit_s: float, target: Target
) -> LaunchSurvey:
    """Call the wrapper for these cases with tensors without memory, and launch nothing.

    Call this in a fork: what a version keeps between calls is of no use afterwards, and no driver
    works any more.

    Args:
        version: to call.
        op: its op.
        cases: to make inputs of; their values do not matter.
        limit_s: CPU time after which no further call is made.
        target: the GPU that the wrapper sees. Its own driver does not work in a fork.
    """
    until_s = time.process_time() + limit_s
    version.runtime.use_target(target)
    places: dict[Relation, int] = {}
    of_cases: list[tuple[int, ...] | None] = []
    programs: list[int] = []

    def call(case: Case) -> None:
        is_late = time.process_time() > until_s or len(places) > MAX_RELATIONS
        own, n = (None, 0) if is_late else _survey_one(version, op, case, target)
        own_places = tuple(places.setdefault(each, len(places)) for each in sorted(own or ()))
        of_cases.append(None if own is None else own_places)
        programs.append(n)

    for case in cases:
        call(case)
    varied = _find_rare([*places], of_cases, cases)
    declared = declared_lengths(op) if varied else []
    for place in varied:
        for case in neighbors(op, cases[place], declared):
            call(case)
    return LaunchSurvey(
        relations=tuple(places), of_cases=tuple(of_cases), programs=tuple(programs), varied=varied
    )


def _find_rare(
    relations: Sequence[Relation], of_cases: Sequence[tuple[int, ...] | None], cases: Sequence[Case]
) -> tuple[int, ...]:
    """Return the smallest cases on the paths that few cases take, those of the rarest first.

    Such a path has more relations than the few show: drawn lengths seldom come to it.
    """
    having: dict[int, list[int]] = {}
    for place, own in enumerate(of_cases):
        for i in own or ():
            if relations[i].kind in _PATHS:
                having.setdefault(i, []).append(place)
    rare = sorted((own for own in having.values() if len(own) <= RARE), key=len)
    smallest = (sorted(own, key=lambda i: math.prod(cases[i].shape))[:2] for own in rare)
    return tuple(dict.fromkeys(itertools.chain(*smallest)))[:MAX_VARIED]


def load_meta_functions() -> None:
    """Import what torch imports at the first call without memory, up to a second: before a fork."""
    torch.empty_like(torch.empty(1, device=META)).mean()


def _survey_one(
    version: LoadedVersion, op: operators.Op, case: Case, target: Target
) -> tuple[set[Relation] | None, int]:
    """Return the relations of a call, and its programs; None if it raises, as without data."""
    steps: set[Relation] = set()
    try:
        inputs = _inputs_without_memory(op, case)
        with (
            torch.no_grad(),
            version.runtime.list_launches() as launches,
            fake_gpu(META, target),
            _record_steps(str(job_sources.version_path(version.ref)), steps),
        ):
            version.call(*inputs)
    except BaseException:  # noqa: BLE001 (exit() too: the version's own, and no verdict)
        return None, 0
    lengths = {"rows": math.prod(case.shape[:-1]), "elements": math.prod(case.shape)}
    relations = find_relations(launches, lengths) | steps
    if case.special in SHARED_VALUES and any(math.prod(launch.grid) > 1 for launch in launches):
        relations.add(Relation(Kind.RELATION, f"{case.special}, for several programs"))
    return relations, sum(math.prod(launch.grid) for launch in launches)


@contextmanager
def _record_steps(path: str, steps: set[Relation]) -> Iterator[None]:
    """Add the steps from one operation to another that the functions of a file make.

    Each way out of a condition is another step, also where both are on one line.
    """

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != path:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        last = (frame.f_lineno, -1)

        def step(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last
            if event == "opcode":
                here = (frame.f_lineno, frame.f_lasti)
                way = f"line {last[0]} to {here[0]}, operation {last[1]} to {here[1]}"
                kind = Kind.BRANCH if here[0] == last[0] else Kind.LINE
                steps.add(Relation(kind, f"{frame.f_code.co_name}: {way}", here[0]))
                last = here
            return step

        return step

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


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
