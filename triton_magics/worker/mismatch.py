"""What a wrong output looks like, and the likely cause in words."""

from __future__ import annotations

import itertools
import re

import torch

from triton_magics.model import Case, Mismatch

GRID_ROWS, GRID_COLUMNS = 16, 48
_LOAD = re.compile(r"tl\.load\((?P<args>.*)\)")


def describe(
    got: torch.Tensor,
    value: torch.Tensor,
    allowed: torch.Tensor,
    wrong: torch.Tensor,
    *,
    case: Case,
    source: str,
    output: int = 0,
    whole: torch.Tensor | None = None,
    start: tuple[int, int] = (0, 0),
) -> Mismatch:
    """The worst element, where the errors lie, and the likely cause.

    Args:
        got: the version's output, any float dtype.
        value: the oracle, float64, same shape.
        allowed: what an error may be, broadcastable.
        wrong: boolean, same shape; at least one True.
        case: the input it happened on.
        source: the version's code, for the lines that advice points to.
        output: which of the op's outputs.
        whole: where the whole output is wrong, if what is given is a part of it.
        start: the dimension in which it is a part, and the index at which it begins there.
    """
    everywhere = wrong if whole is None else whole
    flat = int(_badness(got, value, allowed, wrong).flatten().argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(flat), wrong.shape)]
    if index:
        index[start[0]] += start[1]
    where, kind = _where(everywhere)
    cause, advice = _cause(got, value, wrong, kind=kind, case=case, source=source)
    return Mismatch(
        output=output,
        index=tuple(index),
        got=float(got.double().flatten()[flat]),
        expected=float(value.flatten()[flat]),
        allowed=float(allowed.expand_as(value).flatten()[flat]),
        n_wrong=int(everywhere.sum()),
        n_elements=everywhere.numel(),
        where=where,
        cause=cause,
        advice=advice,
        picture=_picture(everywhere),
    )


def _badness(
    got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor, wrong: torch.Tensor
) -> torch.Tensor:
    error = (got.double() - value).abs() / allowed
    return torch.where(wrong, torch.nan_to_num(error, nan=float("inf")), -1.0)


def _matrix(wrong: torch.Tensor) -> torch.Tensor:
    """The mask as rows x columns."""
    if wrong.dim() == 0:
        return wrong.reshape(1, 1)
    return wrong.reshape(-1, wrong.shape[-1]) if wrong.dim() > 1 else wrong.reshape(1, -1)


def _where(wrong: torch.Tensor) -> tuple[str, str]:
    """Where the errors lie, in words and as a kind: all, tail, rows, columns, every, some."""
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
    """Whether they follow each other without a gap."""
    return numbers[-1] - numbers[0] + 1 == len(numbers)


def _step(numbers: list[int], n: int) -> int | None:
    """K if the numbers are every k-th of n, k > 1."""
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
    source: str,
) -> tuple[str | None, str | None]:
    """The likeliest cause and what to write instead."""
    have, want = got.double()[wrong], value[wrong]
    not_finite = bool((~have.isfinite() & want.isfinite()).any())
    if not_finite:
        return _nonfinite_cause(kind, case, source)
    ragged = case.shape and case.shape[-1] & (case.shape[-1] - 1)
    unfilled = _load_without(source, "other=")
    if ragged and unfilled and "mask=" in unfilled[1] and re.search(r"tl\.(max|sum|dot)\(", source):
        return (
            f"`other=` is missing on line {unfilled[0]}: the lanes past the end take part",
            _with_other(unfilled[1]),
        )
    ratio = have / want
    ratio = ratio[ratio.isfinite() & (ratio != 0)]
    if kind == "all" and (factor := _common_factor(ratio)):
        return f"everything is {factor:.4g} times what it should be: a factor is wrong", None
    if bool((have == 0).all()):
        return (
            "these elements were left at zero: part of the output is never computed or stored",
            None,
        )
    if case.layout != "contiguous":
        return (
            f"the input is {case.layout}: an index uses the wrong stride",
            "pass x.stride(0), x.stride(1) to the kernel, or start from x = x.contiguous()",
        )
    relative = float(((have - want).abs() / _scale(value)).amax())
    if case.dtype == "float32" and "tl.dot" in source and 3e-5 < relative < 2e-2:
        return (
            "the product was computed in TF32, which keeps 10 bits of the mantissa",
            'tl.dot(a, b, input_precision="tf32x3")  # or "ieee"',
        )
    if kind in ("tail", "tail_rows"):
        return (
            "the last block ends too late or too early: check the mask and the grid (triton.cdiv)",
            None,
        )
    if relative < 5e-2 and case.dtype in ("float16", "bfloat16"):
        return (
            "the error is that of adding up in half precision",
            "load with .to(tl.float32), accumulate in float32, convert when storing",
        )
    if case.regime == "mean_heavy":
        return (
            "large means cancel: subtract the mean before squaring (two passes, or Welford)",
            None,
        )
    return None, None


def _common_factor(ratio: torch.Tensor) -> float | None:
    """The one factor that explains every element, if there is one and it is not about 1."""
    if ratio.numel() < 2:
        return None
    mean, spread = float(ratio.mean()), float(ratio.std())
    return mean if spread < 1e-3 * abs(mean) and abs(mean - 1) > 0.01 else None


def _scale(value: torch.Tensor) -> float:
    finite = torch.nan_to_num(value, nan=0.0, posinf=0.0, neginf=0.0)
    return max(float(finite.square().mean().sqrt()), 1e-30)


def _nonfinite_cause(kind: str, case: Case, source: str) -> tuple[str | None, str | None]:
    bare = _load_without(source, "mask=")
    unfilled = _load_without(source, "other=")
    if case.regime in ("large", "x10", "shifted") and "exp" in source and kind != "tail":
        return (
            "exp overflows: subtract the row's maximum first",
            "x = tl.exp(x - tl.max(x, axis=0))",
        )
    if bare:
        said = f"a load without a mask on line {bare[0]} reads past the tensor"
        return said, _with_argument(bare[1], "mask=mask, other=0.0")
    if unfilled:
        return (
            f"`other=` is missing on line {unfilled[0]}, so the lanes past the end are undefined",
            _with_other(unfilled[1]),
        )
    return "memory that was never written, or lies outside the tensor, reached the output", None


def _with_other(line: str) -> str:
    """The line with `other=` as the last argument of its `tl.load`."""
    changed = _with_argument(line, 'other=-float("inf")')
    return f"{changed}  # 0.0 for a sum" if changed != line else line


def _with_argument(line: str, argument: str) -> str:
    """The line with one more argument at the end of its `tl.load`."""
    start = line.index("tl.load(") + len("tl.load(")
    depth = 1
    for i in range(start, len(line)):
        depth += (line[i] == "(") - (line[i] == ")")
        if depth == 0:
            return f"{line[:i]}, {argument}{line[i:]}"
    return line


def _load_without(source: str, word: str) -> tuple[int, str] | None:
    """First line with a `tl.load` that lacks a word; `(line, its text)`."""
    for number, line in enumerate(source.splitlines(), 1):
        found = _LOAD.search(line)
        if found and word not in found["args"] and "block_ptr" not in line:
            return number, line.strip()
    return None
