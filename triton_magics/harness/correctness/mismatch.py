"""Describe a wrong output: where the errors are, and the likely cause.

A cause is right or absent. It needs evidence in the values and, for a fault of the code, there too.
`cause_experiments` finds the causes that need further calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from triton_magics.harness.correctness.special_values import NAN_PARTS
from triton_magics.languages.kernel_runtime import Symptom
from triton_magics.model import Case, Cause, CauseCode, Mismatch

SPREAD_FROM_PART = (
    "NaN of another row, head or batch is in this one: a load past its end, times 0, or a value "
    "that a program carries from one to the next"
)
GRID_ROWS, GRID_COLUMNS = 16, 48
_LEAST_SPREAD = 0.01  # of expected elements that show a common factor
Hint = Callable[[Symptom], Cause | None]


def describe(
    got: torch.Tensor,
    value: torch.Tensor,
    allowed: torch.Tensor,
    wrong: torch.Tensor,
    *,
    case: Case,
    hint: Hint,
    output: int = 0,
    whole: torch.Tensor | None = None,
    start: tuple[int, int] = (0, 0),
) -> Mismatch:
    """Describe the worst element, where the errors are, and the likely cause.

    Args:
        got: the version's output, any float dtype.
        value: the oracle, float64, same shape.
        allowed: the largest allowed error, broadcastable.
        wrong: boolean, same shape; at least one True.
        case: the case that failed.
        hint: returns the cause of a symptom from the version's source.
        output: the index of the output.
        whole: the mask of the whole output, if the other tensors are a chunk of it.
        start: the dimension of the chunk, and its first index there.
    """
    everywhere = wrong if whole is None else whole
    flat = int(_badness(got, value, allowed, wrong).flatten().argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(flat), wrong.shape)]
    if index:
        index[start[0]] += start[1]
    where, kind = _where(everywhere)
    return Mismatch(
        output=output,
        index=tuple(index),
        got=float(got.double().flatten()[flat]),
        expected=float(value.flatten()[flat]),
        allowed=float(allowed.expand_as(value).flatten()[flat]),
        n_wrong=int(everywhere.sum()),
        n_elements=everywhere.numel(),
        where=where,
        cause=_cause(got, value, wrong, kind=kind, case=case, hint=hint),
        picture=_picture(everywhere),
    )


def _badness(
    got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor, wrong: torch.Tensor
) -> torch.Tensor:
    error = (got.double() - value).abs() / allowed
    return torch.where(wrong, torch.nan_to_num(error, nan=float("inf")), -1.0)


def _matrix(wrong: torch.Tensor) -> torch.Tensor:
    """Return the mask as rows x columns."""
    if wrong.dim() == 0:
        return wrong.reshape(1, 1)
    return wrong.reshape(-1, wrong.shape[-1]) if wrong.dim() > 1 else wrong.reshape(1, -1)


def _where(wrong: torch.Tensor) -> tuple[str, str]:
    """Return where the errors are, as text and as a kind.

    Kinds: all, tail, tail_rows, rows, columns, every, some.
    """
    mask = _matrix(wrong)
    rows, columns = mask.shape
    if bool(mask.all()):
        return "every element", "all"
    bad_columns = mask.any(0).nonzero().flatten().tolist()
    bad_rows = mask.any(1).nonzero().flatten().tolist()
    whole_columns = bool(mask[:, bad_columns].float().mean() > 0.9)
    whole_rows = bool(mask[bad_rows].float().mean() > 0.9)
    if columns > 1 and whole_columns and bad_columns[-1] == columns - 1 and _run(bad_columns):
        n = len(bad_columns)
        return (
            "all in the last column" if n == 1 else f"all in the last {n} of {columns} columns"
        ), "tail"
    if whole_rows and bad_rows[-1] == rows - 1 and _run(bad_rows) and rows > 1:
        n = len(bad_rows)
        return (
            "all in the last row" if n == 1 else f"all in the last {n} of {rows} rows"
        ), "tail_rows"
    if whole_columns and (step := _step(bad_columns, columns)):
        return f"every {step}th column, from column {bad_columns[0]}", "every"
    if whole_rows:
        return f"{len(bad_rows)} whole rows of {rows}, the first is row {bad_rows[0]}", "rows"
    if whole_columns:
        return (
            f"{len(bad_columns)} whole columns of {columns}, the first is {bad_columns[0]}",
            "columns",
        )
    share = 100 * float(mask.float().mean())
    return f"scattered over {len(bad_rows)} of {rows} rows ({share:.2g} % of the elements)", "some"


def _run(numbers: list[int]) -> bool:
    """Return whether the numbers have no gap."""
    return numbers[-1] - numbers[0] + 1 == len(numbers)


def _step(numbers: list[int], n: int) -> int | None:
    """Return k > 1 if the numbers are every k-th of n, else None."""
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(numbers) > 2 and len(steps) == 1 and (k := steps.pop()) > 1:
        return k if numbers[-1] + k >= n else None
    return None


def _picture(wrong: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    mask = _matrix(wrong).float()[None, None]
    rows, columns = min(GRID_ROWS, mask.shape[2]), min(GRID_COLUMNS, mask.shape[3])
    pooled = torch.nn.functional.adaptive_avg_pool2d(mask.cpu(), (rows, columns))[0, 0]
    return tuple(tuple(round(float(x), 3) for x in row) for row in pooled)


def _cause(
    got: torch.Tensor,
    value: torch.Tensor,
    wrong: torch.Tensor,
    *,
    kind: str,
    case: Case,
    hint: Hint,
) -> Cause | None:
    """Return the likely cause; None where the values show none."""
    have, want = got.double()[wrong], value[wrong]
    if lost := _lost_nonfinite(have, want):
        return lost
    if bool((~have.isfinite() & want.isfinite()).any()):
        if case.special == NAN_PARTS and not _has_poison(got[wrong]):
            return Cause(code=CauseCode.REACH, evidence=SPREAD_FROM_PART)
        return _spread_nonfinite(got, value, wrong) or _nonfinite_cause(got[wrong], case, hint)
    if kind == "all" and (factor := _common_factor(have, want)):
        return Cause(code=CauseCode.CONSTANT_FACTOR, factor=factor)
    if bool((have == 0).all()):
        return Cause(code=CauseCode.ZEROS)
    ragged = case.shape and case.shape[-1] & (case.shape[-1] - 1)
    whole = kind in ("all", "rows", "tail_rows")
    if ragged and whole and (unfilled := hint("last dimension is no power of two")):
        return unfilled
    relative = float(((have - want).abs() / _scale(value)).amax())
    if kind == "tail" and ragged and 2 * wrong.float().mean() < 1:
        return Cause(code=CauseCode.LAST_BLOCK)
    return _precision_cause(relative, case, hint)


def _lost_nonfinite(have: torch.Tensor, want: torch.Tensor) -> Cause | None:
    """Return the cause that all wrong elements are NaN or infinite in the reference alone."""
    if bool(want.isfinite().any()):
        return None
    if bool((have.isfinite() | want.isnan()).all()):
        return Cause(code=CauseCode.NAN_LOST)
    if bool((have.isnan() & want.isinf()).all()):
        text = "NaN where the reference is infinite: infinities are subtracted, or multiplied by 0"
        return Cause(code=CauseCode.REACH, evidence=text)
    return None


def _spread_nonfinite(got: torch.Tensor, value: torch.Tensor, wrong: torch.Tensor) -> Cause | None:
    """Return the cause that NaN or infinity of a row has reached the row beside it.

    A row is an element of an output of one dimension. One row alone may be there by chance.
    """
    have = got[wrong]
    if value.dim() == 0 or bool(have.double().isfinite().any()) or _has_poison(have):
        return None
    rows = [_matrix(x) if x.dim() > 1 else x[:, None] for x in (wrong, ~value.isfinite())]
    is_wrong, has_own = (x.any(1) for x in rows)
    after, before = (is_wrong.nonzero().flatten() + step for step in (1, -1))
    is_beside = any(
        bool(((at >= 0) & (at < len(has_own))).all()) and bool(has_own[at].all())
        for at in (after, before)
    )
    if len(after) < 2 or not is_beside:
        return None
    text = (
        "NaN or infinity of another row is in this one: a load past the end of the row, times 0, "
        "or a value that a program carries from row to row"
    )
    return Cause(code=CauseCode.REACH, evidence=text)


def _precision_cause(relative: float, case: Case, hint: Hint) -> Cause | None:
    """Return the cause of errors that are small beside the output's values."""
    if case.dtype == "float32" and 1e-5 < relative < 5e-3:
        return hint("low precision product") or hint("half precision value")
    if relative < 2e-2 and case.dtype in ("float16", "bfloat16"):
        return hint("half precision sum")
    return None


def _common_factor(have: torch.Tensor, want: torch.Tensor) -> float | None:
    """Return the factor that explains every element; None if there is none, or it is about 1.

    Between two numbers there always is one, so the expected elements must differ.
    """
    ratio = have / want
    usable = ratio.isfinite() & (ratio != 0)
    ratio, size = ratio[usable], want[usable]
    if ratio.numel() < 2 or bool(size.std() <= _LEAST_SPREAD * size.abs().mean()):
        return None
    mean, spread = float(ratio.mean()), float(ratio.std())
    return mean if spread < 1e-3 * abs(mean) and abs(mean - 1) > 0.01 else None


def _scale(value: torch.Tensor) -> float:
    finite = torch.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
    return max(float(finite.square().mean().sqrt()), 1e-30)


def _nonfinite_cause(have: torch.Tensor, case: Case, hint: Hint) -> Cause | None:
    """Return the cause of NaN from plain values; other values may overflow on their own.

    New memory holds NaN of which every bit is set, which no arithmetic gives.
    """
    is_poison = bool(have.isnan().any()) if case.has_plain_values else _has_poison(have)
    if not is_poison:
        return None
    return hint("not finite") or Cause(code=CauseCode.UNSET_MEMORY)


def _has_poison(values: torch.Tensor) -> bool:
    """Return whether a value has every bit set, as memory that was never written."""
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}.get(values.element_size())
    return integers is not None and bool((values.contiguous().view(integers) == -1).any())
