"""Describe the launches of a call, so that a plan can have some case of every kind.

A kernel takes another path where an argument has another relation to a block: it is shorter, as
long, several whole blocks, or several and a part. So does a wrapper that launches other kernels,
other constants, or programs that begin past the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from triton_magics.languages.kernel_runtime import RequestedLaunch

PATH, RAGGED, RELATION, PAIR = 8, 3, 2, 1  # what it is worth to have one of a kind in a plan
MAX_KERNELS = 8  # of a path
_WHOLE, _PART = "whole", "several"  # of a length: a number of blocks, or also a part of one
_SMALLEST_BLOCK = 8  # of an argument


def find_relations(
    launches: Sequence[RequestedLaunch], lengths: Mapping[str, int] = MappingProxyType({})
) -> dict[str, int]:
    """Return what launches look like, as texts, each with its worth.

    Args:
        launches: of a call.
        lengths: of its inputs, by name; a kernel need not get them as arguments.
    """
    names = list(dict.fromkeys(launch.kernel for launch in launches))[:MAX_KERNELS]
    relations = {f"{', '.join(names)}{' several times' * (len(launches) > len(names))}": PATH}
    for launch in launches:
        relations |= _relations_of(launch)
        for (axis, programs), (name, length) in itertools.product(
            _axes_of(launch).items(), lengths.items()
        ):
            text = _compare_programs(name, length, axis, programs)
            relations[f"{launch.kernel}: {text}"] = RAGGED if _PART in text else RELATION
    return relations


def _axes_of(launch: RequestedLaunch) -> dict[str, int]:
    """Return the axes of several programs, with their number."""
    return {f"axis {i}": n for i, n in enumerate(launch.grid) if n > 1}


def _relations_of(launch: RequestedLaunch) -> dict[str, int]:
    ones = {name: str(n) for name, n in launch.blocks.items() if n in (0, 1)}
    switches = ", ".join(f"{k}={v}" for k, v in (launch.switches | ones).items())
    axes = _axes_of(launch)
    path = f"{launch.kernel}({switches})"
    relations = {path: PATH}
    relations |= {f"{path}: programs on {axis}": RELATION for axis in axes}
    for name, length in launch.lengths.items():
        own = [_compare(name, length, b, n) for b, n in launch.blocks.items() if n > 1]
        others = [_compare_programs(name, length, axis, n) for axis, n in axes.items()]
        for text in (*own, *others):
            worth = RAGGED if _PART in text else RELATION
            relations[f"{launch.kernel}: {text}"] = worth
            if switches:
                relations[f"{path}: {text}"] = worth - 1
        relations |= {f"{launch.kernel}: {a}, {b}": PAIR for a, b in itertools.combinations(own, 2)}
    return relations | {f"{launch.kernel}: {text}": RELATION for text in _ends_of(launch, axes)}


def _compare(name: str, length: int, block: str, size: int) -> str:
    if length <= size:
        return f"{name} {'=' if length == size else '<'} {block}"
    return f"{name} is {_WHOLE if length % size == 0 else _PART} blocks of {block}"


def _compare_programs(name: str, length: int, axis: str, programs: int) -> str:
    if length <= programs:
        return f"no more {name} than programs on {axis}"
    return f"{name} is {_WHOLE if length % programs == 0 else _PART} times the programs on {axis}"


def _ends_of(launch: RequestedLaunch, axes: Mapping[str, int]) -> Iterator[str]:
    """Yield where the programs of an axis end before a length or begin past it, by their block."""
    steps = launch.blocks | {k: n for k, n in launch.lengths.items() if n >= _SMALLEST_BLOCK}
    for (axis, programs), (step, size), (name, length) in itertools.product(
        axes.items(), steps.items(), launch.lengths.items()
    ):
        if size > 1 and step != name:
            is_constant = step in launch.blocks
            if (programs - 1) * size >= length:
                yield f"the last {'block of ' * is_constant}{step} on {axis} is past {name}"
            if programs * size < length:
                yield f"all {'blocks of ' * is_constant}{step} on {axis} end before {name}"


__all__ = ["find_relations"]
