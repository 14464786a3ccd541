"""A validation of the cases whose label has some words: to replay one, or to look at a kind."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, job_for, run_validation
from tests.harness.test_cases_beside import UNSEEN
from triton_magics.harness.correctness import validate_job
from triton_magics.harness.load import UserFault
from triton_magics.model import BadgeCode, Case, CaseStatus, Status
from triton_magics.rendering.views.failure import replay_line
from triton_magics.verbs._phrase import as_command, as_magic

pytestmark = pytest.mark.in_turn

RIGHT = KERNELS / "softmax_right.py"
WRONG = UNSEEN / "twentyfourth" / "vector_add_permuted_back.py"


def test_a_failed_case_is_replayed_with_its_layouts() -> None:
    whole = run_validation(WRONG, only="x permuted", seed=11)
    failed = next(r for r in whole.cases if r.status.failed)
    again = run_validation(WRONG, only=failed.case.label, seed=11)
    assert [r.case for r in again.cases] == [failed.case]
    assert again.status is Status.FAILED
    assert again.cases[0].reason == failed.reason


def test_the_label_of_a_plain_case_is_no_part_of_another() -> None:
    value = run_validation(RIGHT, only="7x13 float32")
    assert {r.case.label for r in value.cases} == {"7x13 float32"}


def test_words_choose_all_cases_that_have_them() -> None:
    value = run_validation(RIGHT, only="x transposed")
    assert len(value.cases) >= 5
    assert all("x transposed" in r.case.label for r in value.cases)
    ran = [r.status for r in value.cases if r.status is not CaseStatus.NOT_RUN]
    assert {*ran} == {CaseStatus.PASSED}
    assert value.coverage.is_spot_check
    assert BadgeCode.NAMED_CASES in {badge.code for badge in value.badges}
    assert not value.unreached


def test_a_case_that_ran_again_without_layout_is_replayed(tmp_path: Path) -> None:
    text = RIGHT.read_text()
    head = "def triton_softmax(x):\n"
    assert head in text
    own = (
        "    if not x.is_contiguous():\n        raise ValueError('contiguous only')\n"
        "    if x.dim() == 3:\n        return x.clone()\n"
    )
    (path := tmp_path / "kernel.py").write_text(text.replace(head, head + own))
    whole = run_validation(path, seed=7)
    without = {r.case.evolve(layouts=()) for r in whole.cases if r.case.layouts}
    failed = (r for r in whole.cases if r.status.failed and r.case in without)
    again = next(r for r in failed if r.case.special and r.case.regime != "normal")
    (replayed,) = run_validation(path, seed=7, only=again.case.label).cases
    assert (replayed.case, replayed.status) == (again.case, again.status)


def test_a_label_that_is_a_part_of_others_names_its_own_case() -> None:
    tiny = Case(shape=(7, 13), dtype="float32", regime="tiny", shape_class="odd", seed=1)
    other = tiny.evolve(layouts=(("x", "transposed"),))
    assert tiny.label in other.label
    job = job_for(RIGHT).evolve(only=tiny.label)
    assert validate_job._with_contiguous(job, (other,)) == (other, tiny)
    assert validate_job._with_contiguous(job, (tiny, other)) == (tiny, other)
    assert validate_job._with_contiguous(job.evolve(only="tiny"), (other,)) == (other,)


def test_words_that_no_case_has_are_an_error() -> None:
    with pytest.raises(UserFault, match=r"no case of this plan has 'x transpozed' in its label"):
        run_validation(RIGHT, only="x transpozed")


def test_the_replay_line_names_the_case_and_the_plan() -> None:
    value = run_validation(WRONG, only="x permuted", seed=11, dtypes=("float32",))
    failed = next(r for r in value.cases if r.status.failed)
    for phrase, start in ((as_magic, "%triton_validate"), (as_command, "triton-magics validate")):
        text = replay_line(value, failed, phrase).text
        words = shlex.split(text.replace("`", "").removeprefix("replay: ").removeprefix(start))
        assert words[words.index("--only") + 1] == failed.case.label
        assert words[words.index("--dtype") + 1] == "float32"
        assert words[words.index("--seed") + 1] == "11"
