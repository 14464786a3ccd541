"""The faults that grade the explanations: each is one change of a right kernel."""

from __future__ import annotations

import ast

import pytest

from tests.faults.class_kernels import CAUSES
from tests.faults.corpus_causes import CORRECT
from tests.faults.unseen_faults import Fault, path_of, source_of
from tests.faults.unseen_faults_fourth import FOURTH_ROUNDS
from tests.faults.unseen_faults_third import THIRD_ROUNDS
from tests.faults.unseen_ops import OPS

ROUNDS = [*THIRD_ROUNDS.values(), *FOURTH_ROUNDS.values()]
KNOWN_CAUSES = {*CAUSES, *(cause for causes in CORRECT.values() for cause in causes)}


@pytest.mark.parametrize("fault", [f for faults in ROUNDS for f in faults], ids=lambda f: f[0])
def test_a_fault_changes_one_place_and_still_parses(fault: Fault) -> None:
    right = OPS[fault[0]][1] if fault[0] in OPS else path_of(fault).read_text()
    assert right.count(fault[2]) == 1
    ast.parse(source_of(fault))
    assert fault[1] in KNOWN_CAUSES


def test_the_rounds_hold_different_faults() -> None:
    sources = [source_of(fault) for faults in ROUNDS for fault in faults]
    assert [len(faults) for faults in ROUNDS] == [50, 50, 60, 60]
    assert len(set(sources)) == len(sources)
