"""Values of a case's tensors: the regime sets their scale, the special values their structure.

Both are applied to what an op's `make_inputs` returns: first the regime, then the special values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness.correctness.special_values import (
    NO_SPECIAL,
    Special,
    Structure,
    special_of,
)
from triton_magics.harness.correctness.tolerance import is_floating, widen_float8
from triton_magics.harness.correctness.value_structures import raise_ends, zeros
from triton_magics.model import NORMAL, Case

REGIMES = (NORMAL, *operators.REGIMES)
_SHIFT = {"float16": 64.0, "bfloat16": 64.0}
_LARGE = {"float16": 1e3}  # of others half are past float16's range
_TINY = {"float16": 1e-3}
_BELOW_ZERO = ("shifted", "negative")  # regimes without a positive value
_WITH_HEADS = 4  # dimensions: batch, head, position, head_dim
_BYTE_RANGE = 200  # of 255


def apply_values(inputs: tuple[Any, ...], case: Case, draw: torch.Generator) -> tuple[Any, ...]:
    """Return an op's inputs with the values of a case.

    A regime changes every floating tensor. Special values change one of those with as many
    dimensions as the largest, or all of them, but not the weights beside it. Torch does no
    arithmetic in float8, so its values are changed in float32, and those too large are clamped.
    """
    if case.has_plain_values:
        return inputs
    changed = _apply(widen_float8(*inputs), case, draw)
    rounded = tuple(
        _round_to(new, old.dtype) if is_floating(old) and old.itemsize == 1 else new
        for old, new in zip(inputs, changed, strict=True)
    )
    special = special_of(case.special) or NO_SPECIAL
    if special.is_view:
        views = view_inputs(rounded, rounded, special)
        return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in views)
    if special.has_row_steps:
        return _take_rows_in_steps(rounded, special)
    return join_inputs(rounded, special) if special.joins else rounded


def view_inputs(
    inputs: tuple[Any, ...], views: tuple[Any, ...], special: Special
) -> tuple[Any, ...]:
    """Return the views, those that are a transpose, rows or a part of another one in its memory.

    Args:
        inputs: decide by their shapes and dtypes which is a view of which.
        views: one for each input, or the inputs themselves.
        special: tells which views, and whether the first one is left alone.
    """
    if special.repeats_first:
        return _repeat_first(inputs, views)
    start = 0 if special.alone is None else special.alone + 1
    out = list(views)
    are_views = is_transpose if special.transposes else differ_in_rows
    for i, x in enumerate(inputs):
        j = next((j for j in range(start, i) if are_views(x, inputs[j])), None)
        if j is not None and special.transposes:
            out[i] = out[j].mT
        elif j is not None:
            out[j], out[i] = _share_rows(out[j], out[i])
    return tuple(out)


def _repeat_first(inputs: tuple[Any, ...], views: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the views, the last one that is alike with another as a part of that, repeated."""
    pairs = ((j, i) for i, x in enumerate(inputs) for j in range(i) if are_alike(x, inputs[j]))
    of, last = max(((j, i) for j, i in pairs if inputs[i].dim() >= 2), default=(0, 0))
    out = list(views)
    if last:
        dim = -3 if inputs[last].dim() >= _WITH_HEADS else 0
        out[last] = out[of].narrow(dim, 0, 1).expand_as(inputs[last])
    return tuple(out)


def _share_rows(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both in the memory of the one that has more rows; the other one may be turned."""
    is_turned = one.shape[-1] != other.shape[-1]
    rows = other.mT if is_turned else other
    n, m = one.shape[-2], rows.shape[-2]
    one, rows = (one, one[..., :m, :]) if m < n else (rows[..., :n, :], rows)
    return one, rows.mT if is_turned else rows


def _take_rows_in_steps(inputs: tuple[Any, ...], special: Special) -> tuple[Any, ...]:
    """Return the inputs with rows of one tensor, which has the rows of all of them."""
    parts = find_parts(inputs, special)
    if not parts:
        return inputs
    rows = [inputs[i].mT if is_transposed else inputs[i] for i, is_transposed in parts.items()]
    views = split_in_parts(torch.cat(rows, dim=-2), inputs, parts, special)
    return tuple(views[i].contiguous() if i in views else x for i, x in enumerate(inputs))


def find_parts(inputs: Sequence[Any], special: Special) -> dict[int, bool]:
    """Return the inputs that can lie side by side in one tensor: each with whether transposed.

    They are the first floating one of which there are several, by its shape or its transpose's.
    A projection has four dimensions: batch, head, position and head_dim; its parts may have other
    numbers of heads. A slice has a batch: the rows of one matrix end where the tensor ends.
    """
    least = 3 if special.is_sliced else 1 + special.has_row_steps
    for first, one in enumerate(inputs):
        if special.is_projection:
            parts = {i: False for i, x in enumerate(inputs) if i >= first and _are_heads(x, one)}
        else:
            parts = {
                i: i > first and is_transpose(x, one)
                for i, x in enumerate(inputs)
                if i >= first and (are_alike(x, one) or is_transpose(x, one))
            }
        if len(parts) > 1 and one.dim() >= least:
            return parts
    return {}


def shape_of_whole(
    inputs: Sequence[Any], parts: Mapping[int, bool], special: Special
) -> tuple[int, ...]:
    """Return the shape of the tensor that holds all parts, and the spare one if there is one."""
    first, n = tuple(inputs[next(iter(parts))].shape), _n_chunks(parts, special)
    if special.is_projection:
        batch, _, positions, head_dim = first
        heads = sum(inputs[i].shape[1] + special.has_spare_head for i in parts)
        return (batch, positions + special.is_sliced, heads, head_dim)
    if special.is_sliced:
        return (*first[:-2], first[-2] + 1, n * first[-1])
    if special.has_row_steps:
        return (*first[:-2], n * first[-2], first[-1])
    return (*first[:-1], n * first[-1])


def split_in_parts(
    whole: torch.Tensor, inputs: Sequence[Any], parts: Mapping[int, bool], special: Special
) -> dict[int, torch.Tensor]:
    """Return views of a tensor for the inputs of `find_parts`, but for the one that is alone."""
    if special.is_sliced:
        rows = 1 if special.is_projection else -2
        whole = whole.narrow(rows, 0, whole.shape[rows] - 1)
    if special.is_projection:
        own = [inputs[i].shape[1] for i in parts]
        ends = itertools.accumulate(n + special.has_spare_head for n in own)
        starts = (0, *ends)
        chunks = [
            whole.narrow(2, start, n).transpose(1, 2) for start, n in zip(starts, own, strict=False)
        ]
    elif special.has_row_steps:
        n = len(parts)
        last = whole.shape[-2] // n
        chunks = [whole[..., ::step, :][..., :last, :] for step in range(n, 0, -1)]
    elif special.in_turn:
        chunks = [*whole.unflatten(-1, (-1, _n_chunks(parts, special))).unbind(-1)]
    else:
        chunks = [*whole.chunk(_n_chunks(parts, special), dim=-1)]
    if special.spare is not None:
        del chunks[special.spare]
    if special.is_reversed:
        chunks.reverse()
    pairs = zip(parts.items(), chunks, strict=True)
    views = {i: view.mT if is_transposed else view for (i, is_transposed), view in pairs}
    if special.alone is not None:
        del views[[*views][special.alone]]
    return views


def _are_heads(x: Any, other: Any) -> bool:
    """Return whether two inputs are floating heads, of the same batch, positions and head_dim."""
    both = _is_floating(x) and _is_floating(other) and x.dim() == other.dim() == 4
    return both and x.dtype == other.dtype and _but_heads(x) == _but_heads(other)


def _but_heads(x: torch.Tensor) -> tuple[int, ...]:
    return (x.shape[0], *x.shape[2:])


def _n_chunks(parts: Mapping[int, bool], special: Special) -> int:
    return len(parts) + (special.spare is not None)


def nan_in_parts(
    inputs: tuple[Any, ...], dims: Sequence[int | None], draw: torch.Generator
) -> tuple[Any, ...]:
    """Return the inputs with NaN in about half of the parts that an op computes apart.

    Args:
        inputs: of a call.
        dims: for each input the dimension along which it may be cut, as in `INDEPENDENT`.
        draw: for the parts.

    The last input that may be cut has the NaN: of attention these are the values.
    """
    cut = [i for i, dim in enumerate(dims) if dim is not None and is_floating(inputs[i])]
    if not cut:
        return inputs
    place = cut[-1]
    x, dim = inputs[place], dims[place]
    sizes = [n if i == dim else 1 for i, n in enumerate(x.shape)]
    is_nan = torch.rand(sizes, device=x.device, generator=draw) < 0.5
    changed = x.masked_fill(is_nan, torch.nan)
    return (*inputs[:place], changed, *inputs[place + 1 :])


def is_transpose(x: Any, other: Any) -> bool:
    """Return whether two inputs are floating, and one has the shape of the other's transpose."""
    both = _is_floating(x) and _is_floating(other) and min(x.dim(), other.dim()) >= 2
    return both and x.dtype == other.dtype and x.shape == other.mT.shape


def differ_in_rows(x: Any, other: Any) -> bool:
    """Return whether floating inputs, or one and the other's transpose, differ in rows alone."""
    both = _is_floating(x) and _is_floating(other) and min(x.dim(), other.dim()) >= 2
    if not both or x.dtype != other.dtype or x.shape[:-2] != other.shape[:-2]:
        return False
    length = other.shape[-1]
    return x.shape[-2:] != other.shape[-2:] and (
        x.shape[-1] == length or (x.shape[-2] == length and x.mT.shape != other.shape)
    )


def join_inputs(inputs: tuple[Any, ...], special: Special) -> tuple[Any, ...]:
    """Return the inputs with the first of those that are alike in place of the others."""
    joined = [*inputs]
    rank = max((x.dim() for x in inputs if _is_floating(x)), default=0)
    for i, x in enumerate(inputs):
        if special.of_largest and _is_floating(x) and x.dim() < rank:
            continue
        alike = [j for j, y in enumerate(inputs) if are_alike(x, y)]
        if alike and special.alone is not None:
            del alike[special.alone]
        if i in alike:
            joined[i] = inputs[alike[0]]
    return tuple(joined)


def are_alike(x: Any, other: Any) -> bool:
    """Return whether two inputs are floating tensors of one shape and dtype."""
    both = _is_floating(x) and _is_floating(other)
    return both and x.dtype == other.dtype and x.shape == other.shape


def _round_to(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    limit = torch.finfo(dtype).max
    return torch.where(x.isfinite(), x.clamp(-limit, limit), x).to(dtype)


def _apply(inputs: tuple[Any, ...], case: Case, draw: torch.Generator) -> tuple[Any, ...]:
    changed = [_apply_regime(x, case) if _is_floating(x) else x for x in inputs]
    rank = max((x.dim() for x in changed if _is_floating(x)), default=0)
    special = special_of(case.special) or NO_SPECIAL
    places = [i for i, x in enumerate(changed) if _is_floating(x) and x.dim() == rank]
    if special.of_bytes:
        places = [i for i, x in enumerate(changed) if has_bytes(x)]
    for i, apply in _structures(special, places, case):
        if special.fits(tuple(changed[i].shape)):
            changed[i] = apply(changed[i], draw)
    raises = special.has_ends and case.regime not in _BELOW_ZERO
    for i in places if raises else ():
        changed[i] = raise_ends(changed[i], draw)
    return tuple(changed)


def _structures(special: Special, floats: list[int], case: Case) -> Iterator[tuple[int, Structure]]:
    """Yield the inputs that get a structure, each with it."""
    own = special.places
    if not own and floats:
        chosen = floats if special.everywhere else [floats[case.seed % len(floats)]]
        own = dict.fromkeys(chosen, special.apply)
    of_bytes = (i for i, structure in special.places.items() if structure is zeros)
    for i in sorted({*floats, *of_bytes}):
        structure = own.get(i, special.others)
        if structure is not None:
            yield i, structure


def has_bytes(x: Any) -> bool:
    """Return whether an input is a tensor of 8-bit integers, such as quantised weights.

    Those of a mask, or of weights of -1, 0 and 1, are none: they do not span most of the type.
    """
    if not isinstance(x, torch.Tensor) or x.dtype not in (torch.int8, torch.uint8) or not x.numel():
        return False
    return int(x.max()) - int(x.min()) > _BYTE_RANGE


def _is_floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point and x.numel() > 0


def _apply_regime(x: torch.Tensor, case: Case) -> torch.Tensor:
    scale = {
        "x0.1": 0.1,
        "x10": 10.0,
        "large": _LARGE.get(case.dtype, 1e5),
        "tiny": _TINY.get(case.dtype, 1e-4),
    }.get(case.regime, 1.0)
    mean = _SHIFT.get(case.dtype, 1000.0)
    shift = {"shifted": -5.0, "mean_heavy": mean, "negative": -mean}.get(case.regime, 0.0)
    return x if case.regime == NORMAL else x * scale + shift
