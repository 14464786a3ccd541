"""Describe the launches of a call, so that a plan can have some case of every kind.

A kernel takes another path where an argument has another relation to a block: it is shorter, as
long, several whole blocks, or several and a part. So does a wrapper that launches other kernels,
other constants, or programs that begin past the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from triton_magics.languages.kernel_runtime import RequestedLaunch
from triton_magics.model import Value

MAX_KERNELS = 8  # of a path
_SMALLEST_BLOCK = 8  # of an argument


class Kind(IntEnum):
    """Kind of what cases have in common, the simplest to read first."""

    VALUE = 0  # of the plan: a dtype, a layout, a parameter
    PATH = 1  # the kernels, or the switches of one
    LINE = 2  # a line of the wrapper runs after another one
    BRANCH = 3  # the same within a line
    UNCOVERED = 4  # blocks of a constant do not end where a length does
    RAGGED = 5  # several blocks of a length, and a part of one
    RELATION = 6
    RAGGED_ON_PATH = 7
    RELATION_ON_PATH = 8
    PAIR = 9  # relations to two blocks at once


PATHS = (Kind.PATH, Kind.LINE, Kind.BRANCH)
WORTH = {
    Kind.VALUE: 0, Kind.PATH: 8, Kind.LINE: 8, Kind.BRANCH: 8, Kind.UNCOVERED: 2, Kind.RAGGED: 3,
    Kind.RELATION: 2, Kind.RAGGED_ON_PATH: 2, Kind.RELATION_ON_PATH: 1, Kind.PAIR: 1,
}  # fmt: skip
"""What it is worth to have one of a kind in a plan."""
_ON_PATH = {Kind.RAGGED: Kind.RAGGED_ON_PATH, Kind.RELATION: Kind.RELATION_ON_PATH}


class Relation(NamedTuple):
    """Something that the launches of a call have, or its case.

    Attributes:
        kind, text: of it; the text tells it from others.
        line: of the version's file that a step comes to; 1-based.
    """

    kind: Kind
    text: str
    line: int | None = None


class LaunchSurvey(Value):
    """Relations of the launches of a version.

    Attributes:
        relations: those that any call has.
        of_cases: the relations of each case, by their place there; None: its call raised, or was
            not made. After those that were given come the neighbors of some of them.
        programs: that each case launches; 0 where no call was made.
        varied: the cases, by their place, whose neighbors were called too, each with the line of
            the condition whose numbers these have, 0 for none. A neighbor has its place here too.
    """

    relations: tuple[Relation, ...] = ()
    of_cases: tuple[tuple[int, ...] | None, ...] = ()
    programs: tuple[int, ...] = ()
    varied: tuple[tuple[int, int], ...] = ()


def find_relations(
    launches: Sequence[RequestedLaunch], lengths: Mapping[str, int] = MappingProxyType({})
) -> set[Relation]:
    """Return what launches look like.

    Args:
        launches: of a call.
        lengths: of its inputs, by name; a kernel need not get them as arguments.
    """
    names = list(dict.fromkeys(launch.kernel for launch in launches))[:MAX_KERNELS]
    path = f"{', '.join(names)}{' several times' * (len(launches) > len(names))}"
    relations = {Relation(Kind.PATH, path)}
    for launch in launches:
        relations |= {*_relations_of(launch)}
        for (axis, programs), (name, length) in itertools.product(
            _axes_of(launch).items(), lengths.items()
        ):
            kind, text = _compare_programs(name, length, axis, programs)
            relations.add(Relation(kind, f"{launch.kernel}: {text}"))
    return relations


def _axes_of(launch: RequestedLaunch) -> dict[str, int]:
    """Return the axes of several programs, with their number."""
    return {f"axis {i}": n for i, n in enumerate(launch.grid) if n > 1}


def _relations_of(launch: RequestedLaunch) -> Iterator[Relation]:
    ones = {name: str(n) for name, n in launch.blocks.items() if n in (0, 1)}
    switches = ", ".join(f"{k}={v}" for k, v in (launch.switches | ones).items())
    axes, kernel = _axes_of(launch), launch.kernel
    path = f"{kernel}({switches})"
    yield Relation(Kind.PATH, path)
    for axis in axes:
        yield Relation(Kind.RELATION, f"{path}: programs on {axis}")
    for name, length in launch.lengths.items():
        own = [_compare(name, length, b, n) for b, n in launch.blocks.items() if n > 1]
        for kind, text in (*own, *(_compare_programs(name, length, *a) for a in axes.items())):
            yield Relation(kind, f"{kernel}: {text}")
            if switches:
                yield Relation(_ON_PATH[kind], f"{path}: {text}")
        for (_, one), (_, other) in itertools.combinations(own, 2):
            yield Relation(Kind.PAIR, f"{kernel}: {one}, {other}")
    for kind, text in _ends_of(launch, axes):
        yield Relation(kind, f"{kernel}: {text}")


def _compare(name: str, length: int, block: str, size: int) -> tuple[Kind, str]:
    if length <= size:
        return Kind.RELATION, f"{name} {'=' if length == size else '<'} {block}"
    if length % size == 0:
        return Kind.RELATION, f"{name} is whole blocks of {block}"
    return Kind.RAGGED, f"{name} is several blocks of {block}"


def _compare_programs(name: str, length: int, axis: str, programs: int) -> tuple[Kind, str]:
    if length <= programs:
        return Kind.RELATION, f"no more {name} than programs on {axis}"
    if length % programs == 0:
        return Kind.RELATION, f"{name} is whole times the programs on {axis}"
    return Kind.RAGGED, f"{name} is several times the programs on {axis}"


def _ends_of(launch: RequestedLaunch, axes: Mapping[str, int]) -> Iterator[tuple[Kind, str]]:
    """Yield where the programs of an axis end before a length or begin past it, by their block.

    An argument may be such a block, too, or the number of blocks of a program, but need not.
    """
    steps = launch.blocks | {k: n for k, n in launch.lengths.items() if n >= _SMALLEST_BLOCK}
    several = {
        f"{count} times {block}": n * size
        for (count, n), (block, size) in itertools.product(
            launch.counts.items(), launch.blocks.items()
        )
        if n > 1 and size > 1
    }
    for (axis, programs), (step, size), (name, length) in itertools.product(
        axes.items(), (steps | several).items(), launch.lengths.items()
    ):
        if size > 1 and name != step.split()[0]:
            is_block = step in launch.blocks
            kind = Kind.UNCOVERED if is_block or step in several else Kind.RELATION
            if (programs - 1) * size >= length:
                yield kind, f"the last {'block of ' * is_block}{step} on {axis} is past {name}"
            if programs * size < length:
                yield kind, f"all {'blocks of ' * is_block}{step} on {axis} end before {name}"


__all__ = ["PATHS", "WORTH", "Kind", "LaunchSurvey", "Relation", "find_relations"]
