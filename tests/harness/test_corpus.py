"""A part of the corpus, another one each day; and that the corpus is what it says it is.

`make corpus` runs all of it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.faults import mutate
from tests.faults.corpus_files import PARTS, files, part_of, part_of_day, wrong_kernels
from tests.faults.corpus_guards import without
from tests.faults.mutate import places, substitute
from tests.harness.kit import KERNELS, field_of, run_cases
from triton_magics import operators
from triton_magics.model import Case, CaseStatus

ROOT = KERNELS.parents[2]
WRONG = wrong_kernels()
CHEATS = sorted((KERNELS / "cheats").glob("*.py"))
RIGHT = [*sorted((KERNELS / "right").glob("*.py")), *sorted(KERNELS.glob("*_right.py"))]
WITNESSES = json.loads((KERNELS.parent / "witnesses.json").read_text())
DROPPED = json.loads((KERNELS.parent / "dropped.json").read_text())
MUTANTS = mutate.build()


def test_the_corpus_is_as_large_as_it_must_be() -> None:
    assert len(WRONG) >= 60
    assert len({field_of(p, "op") for p in WRONG}) >= 8
    assert len(CHEATS) >= 20
    assert len(RIGHT) >= 40
    assert {field_of(p, "op") for p in RIGHT} == set(operators.names())


def test_every_cheat_names_its_public_source() -> None:
    unsourced = [
        p.stem for p in CHEATS if not re.search(r"^source: https://\S+", p.read_text(), re.M)
    ]
    assert unsourced == []


def test_wrong_kernels_and_witnesses_match_one_to_one() -> None:
    assert set(WITNESSES) == {p.stem for p in WRONG}
    errors = [w["error"] for w in WITNESSES.values()]
    assert all(isinstance(e, str) or e > 10 for e in errors)


@pytest.mark.parametrize("path", MUTANTS, ids=lambda p: p.stem)
def test_a_mutant_is_one_substitution_in_a_right_kernel(path: Path) -> None:
    right = (KERNELS / "right" / f"{field_of(path, 'from')}.py").read_text()
    operator = field_of(path, "operator")
    mutants = {substitute(right, *place).split('"""', 2)[2] for place in places(right, operator)}
    assert path.read_text().split('"""', 2)[2] in mutants


def test_every_mutant_is_in_the_corpus_or_dropped() -> None:
    manifest = {mutant.name: mutant for mutant in mutate.manifest()}
    drawn = mutate.draw_all()
    assert set(manifest) | set(DROPPED) == set(drawn)
    assert not set(manifest) & set(DROPPED)
    assert all(mutant["reason"] for mutant in DROPPED.values())
    assert all(drawn[name] == mutant for name, mutant in manifest.items())


def test_mutants_are_built_again_and_others_deleted(tmp_path: Path) -> None:
    (tmp_path / "drop_mask_9_sum_blocks.py").write_text("of an earlier manifest")
    (tmp_path / "leaves_the_tail.py").write_text("by hand")
    (tmp_path / MUTANTS[0].name).write_text("changed")
    built = mutate.build(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {"leaves_the_tail.py", *(p.name for p in built)}
    assert [p.read_text() for p in built] == [p.read_text() for p in MUTANTS]


def test_a_changed_right_kernel_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(KERNELS / "right", tmp_path / "right")
    kernel = tmp_path / "right" / f"{mutate.manifest()[0].kernel}.py"
    kernel.write_text(kernel.read_text() + "\nMORE = 1\n")
    monkeypatch.setattr(mutate, "KERNELS", tmp_path)
    (tmp_path / "wrong").mkdir()
    with pytest.raises(ValueError, match=rf"{kernel.name} has changed.*mutate.py manifest"):
        mutate.build(tmp_path / "wrong")


def test_foreign_attributes_of_shared_nodes_are_not_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Tree:
        def __deepcopy__(self, memo: object) -> None:
            raise AssertionError("another tool's tree is copied")

    source = "tl.load(here, mask=here < end, other=0.0)"
    (name,) = ast.parse("x").body
    monkeypatch.setattr(name.value.ctx, "parent", Tree(), raising=False)
    assert ast.parse("y").body[0].value.ctx is name.value.ctx
    assert [ast.unparse(mutant) for _, mutant in places(source, "drop_mask")] == ["tl.load(here)"]


def test_at_least_half_of_the_wrong_kernels_are_nobodys_choice() -> None:
    assert 2 * len(MUTANTS) >= len(WRONG)


def test_a_buffer_zeroed_for_atomics_is_no_torch_result() -> None:
    one_class = Case(shape=(7, 1), dtype="float32", seed=1)  # the loss of a single class is zero
    (result,) = run_cases(KERNELS / "right" / "cross_entropy_atomics.py", one_class)
    assert result.status is CaseStatus.PASSED, result.reason


ORDINARY = Case(shape=(7, 13), dtype="float32", seed=1)
ALONE = [
    ("exact type", "returns_a_subclass", ORDINARY),
    ("exact type", "returns_a_list", ORDINARY),
    ("shape", "squeezes_its_output", Case(shape=(1, 13), dtype="float32", seed=1)),
    ("dtype", "returns_a_wider_dtype", ORDINARY),
    ("aliasing", "returns_its_input_where_it_can", ORDINARY.evolve(regime="zeros")),
    ("memory of earlier outputs", "returns_the_same_buffer", ORDINARY),
    ("stale", "caches_by_identity", ORDINARY),
    ("work left behind", "leaves_a_thread", ORDINARY),
    ("inputs unchanged", "changes_its_input", ORDINARY),
    ("who computes", "launches_a_decoy", ORDINARY),
    ("bounds of loads (interpreter)", "reads_outside_and_drops_it", ORDINARY),
    ("poisoned memory", "saves_the_memset", Case(shape=(725, 725), dtype="float32", seed=1)),
]


@pytest.mark.parametrize(("guard", "kernel", "case"), ALONE)
def test_a_kernel_passes_without_its_only_guard(guard: str, kernel: str, case: Case) -> None:
    path = KERNELS / f"{kernel}.py"
    assert run_cases(path, case)[0].status.failed
    with without(guard):
        assert run_cases(path, case)[0].status is CaseStatus.PASSED
    assert run_cases(path, case)[0].status.failed


DIFFERS = "of 4 in a row, was wrong"
STATE = "stale_state"
LEAVES = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
LATER = {
    "wrong": (2, "out.mul_(1.001)", CaseStatus.WRONG_VALUES, STATE),
    "NaN": (3, "out[0] = float('nan')", CaseStatus.WRONG_VALUES, STATE),
    "unfinished": (3, LEAVES, CaseStatus.UNFINISHED_WORK, "left a thread running"),
    "unfinished with masked memory": (4, LEAVES, CaseStatus.UNFINISHED_WORK, "left a thread"),
    "unfinished with new contents": (5, LEAVES, CaseStatus.UNFINISHED_WORK, "left a thread"),
    "as far off as rounding may be": (2, "out.mul_(1 + 2**-22)", CaseStatus.PASSED, "None"),
}


@pytest.mark.parametrize("label", LATER)
def test_a_call_after_the_first_has_to_be_right_and_finished_too(
    tmp_path: Path, label: str
) -> None:
    number, does, status, why = LATER[label]
    end = "    return out.view(x.shape)\n"
    source = (KERNELS / "softmax_right.py").read_text()
    assert source.count(end) == 1
    path = tmp_path / "later.py"
    path.write_text(
        source.replace(
            end, f"    CALLS.append(x)\n    if len(CALLS) == {number}:\n        {does}\n{end}"
        )
        + "\n\nimport threading\n\nCALLS = []\n"
    )
    (result,) = run_cases(path, ORDINARY)
    assert result.status is status, result
    cause = result.mismatch and result.mismatch.cause
    assert why in str(cause.code if cause else result.reason)
    assert result.deterministic is (None if "unfinished" in label else False)


FORMS = {
    "one more dimension": ("out.view(1, *x.shape)", CaseStatus.WRONG_SHAPE),
    "a tuple": ("(out.view(x.shape),)", CaseStatus.WRONG_TYPE),
    "its input": ("x.copy_(out.view(x.shape))", CaseStatus.ALIASED),
}


def write_changed(tmp_path: Path, old: str, new: str) -> Path:
    """Write the right softmax with one line replaced, and with a list and a dict."""
    source = (KERNELS / "softmax_right.py").read_text()
    assert source.count(old) == 1
    path = tmp_path / "later.py"
    path.write_text(source.replace(old, new) + "\n\nCALLS, OUTPUTS = [], {}\n")
    return path


@pytest.mark.parametrize("label", FORMS)
def test_a_call_after_the_first_has_to_return_the_same_form(tmp_path: Path, label: str) -> None:
    returns, status = FORMS[label]
    end = "    return out.view(x.shape)\n"
    twice = f"    CALLS.append(x)\n    if len(CALLS) == 2:\n        return {returns}\n"
    (result,) = run_cases(write_changed(tmp_path, end, twice + end), ORDINARY)
    assert result.status is status
    assert DIFFERS in str(result.reason)


@pytest.mark.parametrize(
    ("number", "status"), [(2, CaseStatus.WRONG_VALUES), (9, CaseStatus.ALIASED)]
)
def test_a_later_call_that_writes_into_the_first_output_fails(
    tmp_path: Path, number: int, status: CaseStatus
) -> None:
    allocation = "    out = torch.empty_like(rows)\n"
    path = write_changed(
        tmp_path, allocation, "    out = OUTPUTS.setdefault(rows.shape, torch.empty_like(rows))\n"
    )
    end = "    return out.view(x.shape)\n"
    wrong = f"    CALLS.append(x)\n    if len(CALLS) == {number}:\n        out.mul_(1.001)\n"
    path.write_text(path.read_text().replace(end, wrong + end))
    (result,) = run_cases(path, ORDINARY)
    assert result.status is status


def test_the_interpreter_detects_a_store_out_of_bounds_twice() -> None:
    path = KERNELS / "forgets_the_mask.py"
    once = ORDINARY.evolve(regime="x10")  # not called again, without its bands
    for guard in ("guard bands (writes)", "bounds of loads (interpreter)"):
        with without(guard):
            assert run_cases(path, once)[0].status is CaseStatus.OUT_OF_BOUNDS
    with without("guard bands (writes)"), without("bounds of loads (interpreter)"):
        assert run_cases(path, once)[0].status is CaseStatus.PASSED


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rows_far_below_zero_reveal_unmasked_maxima() -> None:
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


def test_a_working_copy_is_no_evidence_of_a_torch_result() -> None:
    ones = tuple(Case(shape=(1, 1), dtype="float32", seed=seed) for seed in range(8))
    results = run_cases(KERNELS / "right" / "relu_on_a_copy.py", *ones)
    assert {r.status for r in results} == {CaseStatus.PASSED}


@pytest.mark.in_turn
@pytest.mark.parametrize("first", [date(2026, 11, 21), date(2027, 2, 27)])
def test_so_many_days_in_a_row_have_every_kernel_once(first: date) -> None:
    days = [first + timedelta(days=n) for n in range(PARTS)]
    paths = [path for day in days for path in part_of(files(), part_of_day(day))]
    assert sorted(paths) == sorted(KERNELS.rglob("*.py"))
    sizes = {len(part_of(files(), part_of_day(day))) for day in days}
    assert max(sizes) - min(sizes) <= 1


def test_todays_part_of_the_corpus_gets_its_verdicts(tmp_path: Path) -> None:
    part = part_of_day(date.today())
    print(f"part {part} of the corpus")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/faults/corpus.py"), "--part", part, "--budget", "10",
         "--only", "^(?!classes/)", "--json", str(tmp_path / "part.json")],
        capture_output=True, text=True, check=False, env={**os.environ, "TRITON_INTERPRET": "1"},
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0, f"part {part}\n{done.stdout}\n{done.stderr}"
    assert json.loads((tmp_path / "part.json").read_text())["kernels"]
