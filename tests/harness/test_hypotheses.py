"""The gate of all causes: calls that each one predicts, and that were not used to find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness.hypotheses import (
    Hypothesis,
    Trial,
    find_confirmed,
    make_constant,
    make_equal,
    vanishes,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import load_version
from triton_magics.model import Case, Cause, CauseCode

INDEX = Cause(code=CauseCode.WRONG_STRIDE)
PART = Cause(code=CauseCode.PARTIAL_EXTENT)
PLAIN_CASE = Case(shape=(7, 13), dtype="float32", seed=1)


@dataclass(frozen=True)
class Outcome:
    """A trial with a known outcome."""

    right: bool

    def is_right(self, _: Any) -> bool:
        return self.right


def a_hypothesis(cause: Cause, *, right: bool = True, wrong: bool = False) -> Hypothesis:
    """Return a hypothesis of which one call is right or not, and one that should be wrong."""
    trials = cast("list[Trial]", [Outcome(right), Outcome(wrong)])
    return Hypothesis(cause, right=(trials[0],), wrong=(trials[1],))


def confirm(*hypotheses: Hypothesis) -> Cause | None:
    return find_confirmed(cast("Subject", None), hypotheses)


def subject_of(path: Path) -> Subject:
    job = job_for(path)
    version = load_version(job.version)
    return Subject(operators.load(job.op.name), version, job, CPU, path.read_text())


def test_a_cause_is_confirmed_if_all_its_predictions_come_true() -> None:
    assert confirm(a_hypothesis(INDEX)) == INDEX
    assert confirm(a_hypothesis(INDEX, right=False)) is None
    assert confirm(a_hypothesis(INDEX, wrong=True)) is None


def test_causes_of_two_codes_leave_none() -> None:
    assert confirm(a_hypothesis(INDEX), a_hypothesis(PART)) is None
    assert confirm(a_hypothesis(INDEX), a_hypothesis(PART, right=False)) == INDEX
    assert confirm(a_hypothesis(INDEX), a_hypothesis(INDEX)) == INDEX


def test_a_fault_has_to_stay_with_other_values() -> None:
    """Wrong here and right in float32, but right in general too: no lower precision."""
    right = subject_of(KERNELS / "softmax_right.py")
    wrong = subject_of(KERNELS / "forgets_other.py")
    hypothesis = vanishes(INDEX, PLAIN_CASE, lambda c: c.evolve(shape=(7, 16)))
    assert not hypothesis.is_confirmed(right)
    assert hypothesis.is_confirmed(wrong)


def test_one_value_is_no_number_of_a_half_type() -> None:
    subject = subject_of(KERNELS / "right" / "mul_flat.py")
    x, y = torch.randn(7, 13), torch.randn(7, 13)
    for which in (0, 1):
        first, second = make_constant(subject, (x, y), ("x",), which)
        assert bool((first == first[0, 0]).all())
        assert not torch.equal(first.half().float(), first)
        assert second is y
    signs = [make_constant(subject, (x, y), ("x",), which)[0][0, 0] > 0 for which in (0, 1)]
    assert signs == [True, False]


def test_one_index_is_an_index() -> None:
    subject = subject_of(KERNELS / "right" / "cross_entropy_rows.py")
    logits, target = torch.randn(7, 13), torch.arange(7)
    assert make_constant(subject, (logits, target), ("target",), 0)[1].tolist() == [6] * 7
    assert make_constant(subject, (logits, target), ("target",), 1)[1].tolist() == [0] * 7


def test_each_index_of_a_dimension_has_the_values_of_the_first() -> None:
    subject = subject_of(KERNELS / "right" / "mul_flat.py")
    x, y = torch.randn(7, 13), torch.randn(7, 13)
    rows, same = make_equal(subject, (x, y), "x", 0)
    assert torch.equal(rows, x[:1].expand(7, 13))
    assert same is y
    assert torch.equal(make_equal(subject, (x, y), "y", 1)[1], y[:, :1].expand(7, 13))
