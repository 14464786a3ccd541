"""Small matrices of cases: a dtype per column, a shape, layout or kind of values per row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from triton_magics.model import Case, CaseResult, CaseStatus, shape_text
from triton_magics.rendering.blocks import Beside, Document, Matrix, MatrixCell
from triton_magics.rendering.numbers import MISSING, count_text

Judged = tuple[Case, CaseStatus | None]  # None: a case of a plan, which has not run
_Keys = Callable[[Case], Iterable[str]]
_MOST_ROWS = 8  # of wrong cases
_MOST_BESIDE = 3  # of them, beside a verdict
_MOST_NAMED = 6
_PRICE_OF_A_ROW = 0.02


def case_matrices(results: Sequence[CaseResult]) -> Document:
    """Return how many cases of each shape, layout and kind of values are right, by dtype.

    Rows without a wrong case are merged if another row has one.
    """
    judged = [(r.case, r.status) for r in results]
    return _matrices(judged, merge=any(r.status.failed for r in results))


def separating_matrix(results: Sequence[CaseResult]) -> Matrix:
    """Return the matrix, by shape, layout or values, whose rows best separate wrong from right."""
    judged = [(r.case, r.status) for r in results if r.status is not CaseStatus.NOT_RUN]
    title, keys = max(_ASPECTS, key=lambda aspect: _separation(judged, aspect[1]))
    return _matrix(title, keys, judged, merge=True, most=_MOST_BESIDE)


def _separation(judged: Sequence[Judged], keys: _Keys) -> float:
    """Return the share of cases in rows that are all wrong or all right, less a price per row."""
    groups: dict[str, list[bool]] = {}
    for case, status in judged:
        for key in keys(case):
            groups.setdefault(key, []).append(status is not None and status.failed)
    pure = sum(len(group) for group in groups.values() if len(set(group)) == 1)
    return pure / sum(map(len, groups.values())) - _PRICE_OF_A_ROW * len(groups)


def plan_matrices(cases: Sequence[Case], run_cases: Sequence[Case]) -> Document:
    """Return how many cases of each shape, layout and kind of values a plan has, by dtype."""
    run = set(run_cases)
    return _matrices([(c, None if c in run else CaseStatus.NOT_RUN) for c in cases], merge=False)


def _matrices(judged: Sequence[Judged], *, merge: bool) -> Document:
    matrices = [_matrix(title, keys, judged, merge=merge) for title, keys in _ASPECTS]
    with_a_choice = [matrix for matrix in matrices if len(matrix.rows) > 1]
    return (Beside(tuple((matrix,) for matrix in with_a_choice or matrices[:1])),)


def _matrix(
    title: str, keys: _Keys, judged: Sequence[Judged], *, merge: bool, most: int = _MOST_ROWS
) -> Matrix:
    run = [pair for pair in judged if pair[1] is not CaseStatus.NOT_RUN]
    dtypes = tuple(dict.fromkeys(case.dtype for case, _ in (run if merge else judged)))
    groups: dict[str, list[Judged]] = {}
    for case, status in judged:
        # Where something is wrong, rows of cases that did not run only hide it.
        for key in () if merge and status is CaseStatus.NOT_RUN else keys(case):
            groups.setdefault(key, []).append((case, status))
    wrong = [name for name, group in groups.items() if merge and _is_wrong(group)]
    quiet = [name for name in groups if merge and name not in wrong]
    named = [(name, groups[name]) for name in groups if not merge or name in wrong[:most]]
    for merged, title_of_row in ((wrong[most:], "more wrong"), (quiet, "others")):
        pairs = [pair for name in merged for pair in groups[name]]
        if merged:
            one = merged[0] if len(merged) == 1 else f"{len(merged)} {title_of_row}"
            named.append((one, list(dict.fromkeys(pairs))))
    rows = tuple((name, tuple(_cell(group, dtype) for dtype in dtypes)) for name, group in named)
    return Matrix(f"cases by {title}", (title, *dtypes), rows)


def _is_wrong(group: Sequence[Judged]) -> bool:
    return any(status is not None and status.failed for _, status in group)


def _cell(group: Sequence[Judged], dtype: str) -> MatrixCell:
    own = [(case, status) for case, status in group if case.dtype == dtype]
    run = [(case, status) for case, status in own if status is not CaseStatus.NOT_RUN]
    if not own:
        return MatrixCell("")
    if not run:
        return MatrixCell(MISSING, "info", f"{count_text(len(own), 'case')} not run: {_names(own)}")
    wrong = [(case, status) for case, status in run if status is not None and status.failed]
    if wrong:
        return MatrixCell(f"{len(wrong)}/{len(run)}", "bad", f"wrong: {_names(wrong)}")
    if all(status is None for _, status in run):
        return MatrixCell(str(len(run)), "info", _names(run))
    right = [(case, status) for case, status in run if status is CaseStatus.PASSED]
    if len(right) == len(run):
        return MatrixCell(str(len(run)), "good", _names(run))
    open_ones = [pair for pair in run if pair not in right]
    return MatrixCell(f"{len(right)}/{len(run)}", "info", f"no verdict: {_names(open_ones)}")


def _names(judged: Sequence[Judged]) -> str:
    labels = [case.label for case, _ in judged]
    more = len(labels) - _MOST_NAMED
    return "; ".join(labels[:_MOST_NAMED]) + (f"; {more} more" if more > 0 else "")


def _layouts(case: Case) -> tuple[str, ...]:
    texts = tuple(layout if name == "*" else f"{name} {layout}" for name, layout in case.layouts)
    return texts or ("contiguous",)


def _values(case: Case) -> tuple[str, ...]:
    special = () if case.special == "plain" else (case.special,)
    scalars = tuple(f"{name}={value}" for name, value in case.scalars)
    regime = () if special and case.regime == "normal" else (case.regime,)
    return (*regime, *special, *scalars)


_ASPECTS: tuple[tuple[str, _Keys], ...] = (
    ("shape", lambda case: (f"{case.size or ''} {shape_text(case.shape)}".strip(),)),
    ("layout", _layouts),
    ("values", _values),
)
