"""A part of the corpus, another one each day; and that the corpus is what it says it is.

`make corpus` runs all of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from tests.faults.corpus import without
from tests.faults.mutate import every_mutant, places, substituted
from tests.worker.harness import KERNELS, run_cases, told
from triton_magics.model import Case, CaseStatus
from triton_magics.ops import BUILTIN

ROOT = KERNELS.parents[2]
WRONG = sorted((KERNELS / "wrong").glob("*.py"))
CHEATS = sorted((KERNELS / "cheats").glob("*.py"))
RIGHT = [*sorted((KERNELS / "right").glob("*.py")), *sorted(KERNELS.glob("*_right.py"))]
WITNESSES = json.loads((KERNELS.parent / "witnesses.json").read_text())
DROPPED = json.loads((KERNELS.parent / "dropped.json").read_text())
PARTS = 60
GENERATED = [p for p in WRONG if "\noperator: " in p.read_text()]


def test_the_corpus_is_as_large_as_it_must_be() -> None:
    assert len(WRONG) >= 60
    assert len({told(p, "op") for p in WRONG}) >= 8
    assert len(CHEATS) >= 20
    assert len(RIGHT) >= 40
    assert {told(p, "op") for p in RIGHT} == set(BUILTIN)


def test_every_cheat_names_its_public_source() -> None:
    unsourced = [
        p.stem for p in CHEATS if not re.search(r"^source: https://\S+", p.read_text(), re.M)
    ]
    assert unsourced == []


def test_every_wrong_kernel_has_its_witness_and_no_witness_is_left_over() -> None:
    assert set(WITNESSES) == {p.stem for p in WRONG}
    errors = [w["error"] for w in WITNESSES.values()]
    assert all(isinstance(e, str) or e > 10 for e in errors)


@pytest.mark.parametrize("path", GENERATED, ids=lambda p: p.stem)
def test_a_mutant_is_one_substitution_of_its_operator_in_a_right_kernel(path: Path) -> None:
    right = (KERNELS / "right" / f"{told(path, 'from')}.py").read_text()
    operator = told(path, "operator")
    made = {substituted(right, *place).split('"""', 2)[2] for place in places(right, operator)}
    assert path.read_text().split('"""', 2)[2] in made


def test_every_mutant_is_in_the_corpus_or_listed_as_dropped_with_the_reason() -> None:
    made = every_mutant()
    there = {p.stem for p in GENERATED}
    assert there | set(DROPPED) == set(made)
    assert not there & set(DROPPED)
    assert all(why["reason"] for why in DROPPED.values())
    differ = [p.stem for p in GENERATED if p.read_text() != made[p.stem]]
    assert differ == []  # the operator, the seed and the right kernels give them again


def test_at_least_half_of_the_wrong_kernels_are_nobodys_choice() -> None:
    assert 2 * len(GENERATED) >= len(WRONG)


def test_a_buffer_zeroed_for_atomics_is_no_evidence_that_torch_made_a_zero() -> None:
    one_class = Case(shape=(7, 1), dtype="float32", seed=1)  # the loss of a single class is zero
    (result,) = run_cases(KERNELS / "right" / "cross_entropy_atomics.py", one_class)
    assert result.status is CaseStatus.PASSED, result.reason


ALONE = [
    ("exact type", "returns_a_subclass"),
    ("exact type", "returns_a_list"),
    ("stale", "caches_by_identity"),
    ("work left behind", "leaves_a_thread"),
    ("inputs unchanged", "changes_its_input"),
    ("no-op launch", "launches_a_decoy"),
]


@pytest.mark.parametrize(("guard", "kernel"), ALONE)
def test_without_the_guard_that_alone_sees_it_a_kernel_gets_through(
    guard: str, kernel: str
) -> None:
    case, path = Case(shape=(7, 13), dtype="float32", seed=1), KERNELS / f"{kernel}.py"
    assert run_cases(path, case)[0].status.failed
    with without(guard):
        assert run_cases(path, case)[0].status is CaseStatus.PASSED
    assert run_cases(path, case)[0].status.failed


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_far_below_zero_show_a_maximum_over_lanes_that_were_not_filled() -> None:
    path = KERNELS / "wrong" / "drop_other_5_softmax_three_kernels.py"
    (normal, negative) = run_cases(
        path,
        Case(shape=(7, 13), dtype="float32", seed=1),
        Case(shape=(7, 13), dtype="float32", regime="negative", seed=1),
    )
    assert normal.status is CaseStatus.PASSED
    assert negative.status is CaseStatus.WRONG_VALUES


def test_a_thread_that_is_left_running_is_seen_daemon_or_not(tmp_path: Path) -> None:
    source = (KERNELS / "leaves_a_thread.py").read_text()
    daemon = tmp_path / "daemon.py"
    daemon.write_text(source.replace(").start()", ", daemon=True).start()"))
    assert daemon.read_text() != source
    for path in (KERNELS / "leaves_a_thread.py", daemon):
        (result,) = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))
        assert result.status is CaseStatus.UNFINISHED_WORK, path


def test_a_copy_to_work_on_is_no_evidence_where_the_answer_is_the_input() -> None:
    ones = tuple(Case(shape=(1, 1), dtype="float32", seed=seed) for seed in range(8))
    results = run_cases(KERNELS / "right" / "relu_on_a_copy.py", *ones)
    assert {r.status for r in results} == {CaseStatus.PASSED}


def test_todays_part_of_the_corpus_gets_its_verdicts(tmp_path: Path) -> None:
    part = f"{date.today().toordinal() % PARTS}/{PARTS}"
    print(f"part {part} of the corpus")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/faults/corpus.py"), "--part", part, "--budget", "10",
         "--json", str(tmp_path / "part.json")],
        capture_output=True, text=True, check=False, env={**os.environ, "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, f"part {part}\n{done.stdout}\n{done.stderr}"
    assert json.loads((tmp_path / "part.json").read_text())["kernels"]
