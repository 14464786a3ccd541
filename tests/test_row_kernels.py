"""The kernels of norm_search.py are right at awkward shapes; its check refuses wrong outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent / "benchmarks"))

import norm_search
from norm_candidates import Candidate, Case, candidates, exact, make_gradient, make_inputs

FORMS = [
    ("softmax", False), ("rms_norm", False), ("layer_norm", False), ("softmax", True),
    ("rms_norm", True), ("layer_norm", True), ("cross_entropy", True),
]  # fmt: skip
CASES = [
    *(Case(op, shape, grads, "float32") for op, grads in FORMS for shape in ((3, 13), (3, 2100))),
    *(Case("rope", shape, dtype="float32") for shape in ((1, 2, 33, 20), (1, 4, 32, 16))),
]


def few(every: list[Candidate]) -> list[Candidate]:
    """Return candidates of all forms: the first and the last of each first word."""
    forms: dict[str, list[Candidate]] = {}
    for candidate in every:
        forms.setdefault(candidate.label.split()[0], []).append(candidate)
    return [c for form in forms.values() for c in (form[0], form[-1])]


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.slow] * (2100 in c.shape), id=c.name) for c in CASES],
)
@pytest.mark.in_turn
def test_row_kernels_are_right_in_float32(case: Case) -> None:
    torch.manual_seed(7)
    inputs = make_inputs(case, "cpu")
    grad = make_gradient(case, inputs[0])
    tried = few(list(candidates(case, inputs, grad)))
    rows, right = norm_search.check(exact(case, inputs, grad), tried)
    assert right == tried, [r for r in rows if not r.get("error_of_allowed", 9.0) <= 1]


@pytest.mark.parametrize(("change", "refused"), [(0.0, False), (0.01, True), (float("nan"), True)])
def test_an_output_that_is_off_in_one_element_is_refused(change: float, refused: bool) -> None:
    torch.manual_seed(7)
    expected = torch.randn(4, 100, dtype=torch.float64)
    out = expected.float()
    out[2, 7] += change
    assert (not norm_search.share_of_allowed(out, expected) <= 1) is refused
