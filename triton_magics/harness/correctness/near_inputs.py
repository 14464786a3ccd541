"""Contents of a case's inputs that differ from its own in little.

A kernel that keeps answers recognizes inputs by something cheaper than all of their elements: their
address, a few of them, a sum. So the contents of a series of calls differ in one element, in two
elements that swap places (their sum stays), or in one argument alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import layout_of_input, make_pristine
from triton_magics.harness.correctness.case_values import has_bytes
from triton_magics.harness.correctness.tolerance import widen_float8
from triton_magics.harness.process.device import CPU
from triton_magics.model import Case

Contents = tuple[Any, ...]
_FRESH_SEED = 0x5EED
ALL_NAN = "NaN alone"
CONSTANTS = {"equal": 1.0, "zeros": 0.0, ALL_NAN: math.nan}  # by the name of special values
SWITCHED = 0.5  # of the short series, where an op has switches
MORE_SWAPS = 3  # a sum in float may depend on the order


def near_contents(
    op: operators.Op,
    case: Case,
    pristine: Contents,
    n: int,
    *,
    switched: Case | None = None,
) -> list[Contents]:
    """Return up to n other contents of a case's inputs, chosen by its seed.

    Scalars and structured tensors are only replaced by others that `make_inputs` or the op gives.
    A float or a byte may have another value of the same draw. An index may not: two swap places.

    Args:
        op: the op.
        case: the case.
        pristine: its contents.
        n: the number wanted.
        switched: the case with the other value of a switch: the first contents are all other
            tensors, and its parameters.
    """
    device = next((x.device for x in pristine if _is_tensor(x)), CPU)
    fresh = make_pristine(op, case.evolve(seed=case.seed ^ _FRESH_SEED), device)
    draw = random.Random(f"{case.seed} near")  # noqa: S311 (replayed from the seed)
    names = op.input_names(len(pristine))
    first, others = _changes(op, pristine, fresh, draw)
    if switched is not None:
        first = [partial(_switch, op, pristine, fresh, dict(switched.scalars))]
    chosen = [*draw.sample(first, len(first)), *others][:n]
    return [
        tuple(
            layouts.equal_where_shared(x, layout_of_input(op, case, i, name))
            if _is_tensor(x)
            else x
            for i, (name, x) in enumerate(zip(names, change(), strict=True))
        )
        for change in chosen
    ]


def switched_case(op: operators.Op, case: Case) -> Case | None:
    """Return the case with the other value of a switch, such as `is_causal`; None: with no other.

    A short series of calls on half of the plain cases has it, but for extents: what the other way
    of the switch has left in memory for later calls shows then.
    """
    draw = random.Random(f"{case.seed} switch")  # noqa: S311 (replayed from the seed)
    names = [
        name
        for name, value in case.scalars
        if isinstance(value, bool) and (not value) in op.scalars.get(name, ())
    ]
    is_plain = case.has_plain_values and not case.extent
    if not names or not is_plain or draw.random() >= SWITCHED:
        return None
    chosen = draw.choice(names)
    return case.evolve(
        scalars=tuple((name, not v if name == chosen else v) for name, v in case.scalars)
    )


def constant_contents(op: operators.Op, pristine: Contents, dtype: str) -> dict[str, Contents]:
    """Return contents whose floating tensors are all 1, 0 or NaN, by the name of such values.

    Those that the op does not take in the dtype are left out. A kernel may find that a weight
    changes nothing, and leave it out from then on. NaN may stay in memory that it has for later
    calls, and is not judged itself: few ops say what they give for it.
    """
    places = [i for i, x in enumerate(pristine) if _is_tensor(x) and x.is_floating_point()]
    floats = {i for i in places if i not in op.structured}
    return {
        name: tuple(torch.full_like(x, v) if i in floats else x for i, x in enumerate(pristine))
        for name, v in CONSTANTS.items()
        if floats and not operators.skips(op, name, dtype)
    }


def change_little(
    old: Contents, other: Contents, draw: random.Random, *, swaps: bool
) -> Contents | None:
    """Return contents in which one element is changed, or two have swapped places.

    Args:
        old: the contents.
        other: contents of the same draw, whose extreme values an element may take.
        draw: chooses the tensor and the place.
        swaps: swap two elements.

    Returns:
        the contents; None if no tensor has two elements.
    """
    tensors = [i for i, x in enumerate(old) if _is_tensor(x) and x.shape == other[i].shape]
    movable = [i for i in tensors if old[i].numel() > 1]
    if not movable:
        return None
    if swaps:
        return _swap_two(old, draw.choice(movable), draw)
    return _change_one(old, other, draw.choice(_changeable(old, movable)), draw)


def _changes(
    op: operators.Op, old: Contents, fresh: Contents, draw: random.Random
) -> tuple[list[Callable[[], Contents]], list[Callable[[], Contents]]]:
    """Return the changes that these contents allow: one of each kind, then more that swap."""
    tensors = [i for i, x in enumerate(old) if _is_tensor(x) and x.shape == fresh[i].shape]
    floats = [i for i in tensors if old[i].is_floating_point()]
    integers = [i for i in tensors if i not in floats]
    movable = [i for i in tensors if old[i].numel() > 1 and i not in op.structured]
    changeable = _changeable(old, movable)
    changes: list[Callable[[], Contents]] = [partial(_replace, old, fresh, tensors)]
    changes += [partial(_change_one, old, fresh, i, draw) for i in changeable]
    changes += [partial(_swap_two, old, i, draw) for i in movable]
    if floats and integers:
        changes += [partial(_replace, old, fresh, floats), partial(_replace, old, fresh, integers)]
    for i, name in enumerate(op.input_names(len(old))):
        others = [v for v in op.scalars.get(name, ()) if v != old[i] and isinstance(v, float)]
        if others:
            changes.append(partial(_with, old, i, draw.choice(others)))
    swaps: list[Callable[[], Contents]] = [
        partial(_swap_two, old, i, draw) for _ in range(MORE_SWAPS) for i in movable
    ]
    return changes, swaps


def _changeable(old: Contents, movable: Sequence[int]) -> Sequence[int]:
    """Return the tensors of which an element may have another value: floats and bytes, else all."""
    free = [i for i in movable if old[i].is_floating_point() or has_bytes(old[i])]
    return free or movable


def _replace(old: Contents, fresh: Contents, which: Sequence[int]) -> Contents:
    """Take all elements of these inputs from the fresh contents."""
    return tuple(fresh[i] if i in which else x for i, x in enumerate(old))


def _switch(
    op: operators.Op, old: Contents, fresh: Contents, scalars: Mapping[str, Any]
) -> Contents:
    """Take all tensors of the same shape from the fresh contents, and these parameters."""
    names = op.input_names(len(old))
    tensors = [i for i, x in enumerate(old) if _is_tensor(x) and x.shape == fresh[i].shape]
    replaced = _replace(old, fresh, tensors)
    return tuple(scalars.get(name, x) for name, x in zip(names, replaced, strict=True))


def _change_one(old: Contents, fresh: Contents, which: int, draw: random.Random) -> Contents:
    """Change one element to the fresh contents' largest or smallest, whichever is further away."""
    changed, flat = _flat_copy(old[which])
    place = draw.randrange(flat.numel())
    (values,) = widen_float8(fresh[which].flatten())
    ends = torch.stack((values.min(), values.max()))
    flat[place] = ends[(ends.double() - flat[place].double()).abs().argmax()]
    return _with(old, which, changed)


def _swap_two(old: Contents, which: int, draw: random.Random) -> Contents:
    """Swap one element with the one that differs most from it."""
    changed, flat = _flat_copy(old[which])
    one = draw.randrange(flat.numel())
    other = int((flat.double() - flat[one].double()).abs().argmax())
    first = flat[one].clone()  # torch has no indexed assignment in float8
    flat[one] = flat[other]
    flat[other] = first
    return _with(old, which, changed)


def _with(old: Contents, which: int, value: Any) -> Contents:
    return (*old[:which], value, *old[which + 1 :])


def _flat_copy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a contiguous copy, and a view of it in one dimension."""
    copied = x.clone(memory_format=torch.contiguous_format)
    return copied, copied.view(-1)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, torch.Tensor)
