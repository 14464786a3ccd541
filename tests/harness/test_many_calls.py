"""Series of calls: contents that differ in little, and what their outputs show."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, job_for, numpy_warnings_ignored, run_cases
from triton_magics import operators
from triton_magics.harness.correctness import call_series
from triton_magics.harness.correctness.call_record import (
    CallFailure,
    CallSeries,
    SeriesRecord,
    Turn,
)
from triton_magics.harness.correctness.call_series import run_series
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_scheduler import switched_forms
from triton_magics.harness.correctness.near_inputs import (
    constant_contents,
    near_contents,
    switched_case,
)
from triton_magics.harness.correctness.one_case import run_case
from triton_magics.harness.correctness.output_forms import form_of
from triton_magics.harness.correctness.series_plan import (
    MANY_CALLS,
    choose_long_series,
    plan_turns,
)
from triton_magics.harness.correctness.validate_job import Subject
from triton_magics.harness.load import load_version
from triton_magics.model import Case, CaseResult, CaseStatus
from triton_magics.model.base import CaseStatus as Status

pytestmark = pytest.mark.in_turn

CASE = Case(shape=(7, 13), dtype="float32", seed=1)
RIGHT = KERNELS / "softmax_right.py"


def write_variant(path: Path, tmp_path: Path, old: str, new: str) -> Path:
    """Write a kernel with one text replaced."""
    source = path.read_text()
    assert source.count(old) == 1
    (tmp_path / "kernel.py").write_text(source.replace(old, new))
    return tmp_path / "kernel.py"


def long_result(path: Path, case: Case = CASE) -> Status:
    return run_long(path, case).status


def run_long(path: Path, case: Case = CASE) -> CaseResult:
    job = job_for(path)
    subject = Subject(
        operators.load(job.op.name), load_version(job.version), job, CPU, path.read_text(),
        long_series={case: MANY_CALLS},
    )  # fmt: skip
    with numpy_warnings_ignored():
        return run_case(subject, case)[0]


def test_near_contents_differ_in_one_element_or_in_two_that_swap() -> None:
    op = operators.load("softmax")
    (x,) = make_pristine(op, CASE, CPU)
    contents = [new for (new,) in near_contents(op, CASE, (x,), 8)]
    n_different = sorted(int((new != x).sum()) for new in contents)
    assert n_different == [1, 2, 2, 2, 2, 91]
    swapped = [new for new in contents if int((new != x).sum()) == 2]
    for new in swapped:
        assert torch.equal(new.flatten().sort().values, x.flatten().sort().values)


def test_near_contents_keep_the_values_of_indices() -> None:
    op = operators.load("cross_entropy")
    old = make_pristine(op, CASE, CPU)
    fresh = make_pristine(op, CASE.evolve(seed=CASE.seed ^ 0x5EED), CPU)
    others = [new[1] for new in near_contents(op, CASE, old, 9)]
    same_values = [new for new in others if not torch.equal(new, fresh[1])]
    assert len(same_values) < len(others)
    assert {int((new != old[1]).sum()) for new in same_values} == {0, 2}
    assert all(torch.equal(new.sort().values, old[1].sort().values) for new in same_values)


def test_near_contents_change_a_byte_of_a_quantised_weight() -> None:
    op = operators.load("quantized_matmul")
    case = CASE.evolve(shape=(5, 31, 300))
    old = make_pristine(op, case, CPU)
    n_different = [int((new[1] != old[1]).sum()) for new in near_contents(op, case, old, 12)]
    assert {0, 1, 2} <= {*n_different}


def test_near_contents_are_those_of_the_layout_and_of_the_seed() -> None:
    op = operators.load("vector_add")
    case = CASE.evolve(layouts=(("y", "expanded"),))
    old = make_pristine(op, case, CPU)
    contents = near_contents(op, case, old, 9)
    assert all(bool((new[1] == new[1][:1]).all()) for new in contents)
    again = near_contents(op, case, old, 9)
    assert [new[2] for new in contents] == [new[2] for new in again]


def test_a_short_series_has_the_other_way_of_a_switch_too() -> None:
    op, n_switched = operators.load("gqa"), 0
    for seed in range(40):
        case = CASE.evolve(shape=(1, 4, 2, 9, 16), scalars=(("is_causal", True),), seed=seed)
        old = make_pristine(op, case, CPU)
        switched = switched_case(op, case)
        (new,) = near_contents(op, case, old, 1, switched=switched)
        assert new[3] is (switched is None)
        if switched:
            n_switched += 1
            assert all(not torch.equal(*pair) for pair in zip(new[:3], old[:3], strict=True))
    assert 10 <= n_switched <= 30


def test_the_other_way_is_compiled_ahead_or_left_out() -> None:
    """On a GPU no call of a series waits for a compiler."""
    op = operators.load("gqa")
    cases = [
        CASE.evolve(shape=(1, 4, 2, 9, 16), scalars=(("is_causal", True),), seed=seed)
        for seed in range(40)
    ]
    forms = switched_forms(op, cases)
    assert forms == [((1, 4, 2, 9, 16), "float32", (), (("is_causal", False),))]
    assert switched_forms(op, [case.evolve(regime="x10") for case in cases]) == []
    assert switched_forms(op, [case.evolve(extent="wide") for case in cases]) == []
    job = job_for(KERNELS / "gqa_right.py")
    subject = Subject(op, None, job, torch.device("cuda"), "")  # nothing compiles ahead
    assert not subject.has_kernels(cases[0])
    assert replace(subject, device=CPU).has_kernels(cases[0])


def test_what_the_other_way_of_a_switch_left_is_found() -> None:
    """Splits of the keys that the mask hides keep the scratch of an earlier call without it."""
    path = KERNELS.parent / "unseen_kernels" / "fifteenth" / "gqa_masked_splits.py"
    op, scalars = operators.load("gqa"), (("is_causal", True),)
    for has_switch in (False, True):
        case = next(
            case
            for seed in range(40)
            for case in [CASE.evolve(shape=(1, 2, 1, 129, 16), seed=seed, scalars=scalars)]
            if (switched_case(op, case) is not None) is has_switch
        )
        (result,) = run_cases(path, case)
        assert result.status.failed is has_switch


def run_on(function, turns: tuple[Turn, ...], **more: object):
    x = torch.arange(6.0)
    memory = tuple(torch.zeros(len(turns), 6) for _ in range(2))
    series = CallSeries((x,), ((x.clone(),), (-x,)), turns, (memory[0],), (memory[1],), **more)
    return run_silently(function, series), *memory, x


def run_silently(function: Callable[..., object], series: CallSeries) -> SeriesRecord:
    """Run a series without a look at threads and streams."""
    return run_series(
        function, series, earlier=(), find_late_work=lambda outputs: None,
        describe=lambda error: CallFailure.model_construct(text=str(error)),
    )  # fmt: skip


def test_a_series_calls_on_all_contents_and_restores_the_first() -> None:
    addresses: list[int] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        addresses.append(x.data_ptr())
        return 2 * x

    turns = (Turn(0), Turn(1), Turn(0, True), Turn(1, True))
    record, at_return, at_end, x = run_on(double, turns)
    assert record.n_calls == 4
    assert at_return[:, 1].tolist() == [2, -2, 2, -2]
    assert torch.equal(at_return, at_end)
    assert addresses[0] == addresses[1] == x.data_ptr() != addresses[2]
    assert torch.equal(x, torch.arange(6.0))


def test_a_tensor_may_be_constant_at_first_and_change_then() -> None:
    first_sight: dict[int, bool] = {}
    tensors: list[torch.Tensor] = []

    def double(x: torch.Tensor) -> torch.Tensor:
        tensors.append(x)
        is_one = first_sight.setdefault(x.data_ptr(), bool((x == 1).all()))
        return torch.full_like(x, 2.0) if is_one else 2 * x

    constant = constant_contents(operators.load("relu"), (torch.arange(6.0),), "float32")
    contents = [*constant.values()]
    assert bool(constant.pop("NaN alone")[0].isnan().all())
    contents.pop()
    assert {k: x.unique().tolist() for k, (x,) in constant.items()} == {"equal": [1], "zeros": [0]}
    turns = plan_turns(8, 4, 2, seed=1)
    assert turns[4:6] == (Turn(2, True), Turn(0, in_last=True))
    x = torch.arange(6.0)
    memory = tuple(torch.zeros(8, 6) for _ in range(2))
    own = ((x.clone(),), (-x,), *contents)
    run_silently(double, CallSeries((x,), own, turns, (memory[0],), (memory[1],)))
    assert memory[0][:6, 1].tolist() == [2, -2, 2, -2, 2, 2]
    assert memory[0][:6, 2].tolist() == [4, -4, 4, -4, 2, 2]  # the last one is stale
    assert tensors[4] is tensors[5]
    assert tensors[0] is not tensors[4]


def test_a_row_of_zeros_that_is_divided_by_is_named() -> None:
    name = "sixth_classes/special_rms_norm_largest_is_zero.py"
    result = run_long(KERNELS.parent / "unseen_kernels" / name)
    assert result.mismatch is not None
    assert result.mismatch.cause is not None
    assert result.mismatch.cause.code == "overflow"
    assert result.reason == "with inputs whose elements are all 0"
    assert result.case == CASE


def test_values_that_an_op_skips_are_no_constant_contents() -> None:
    (x, *others) = make_pristine(operators.load("dropout"), CASE, CPU)
    contents = constant_contents(operators.load("dropout"), (x, *others), "float32")
    assert [*contents] == ["equal", "NaN alone"]
    assert contents["equal"][0].unique().tolist() == [1.0]
    half_alone = replace(operators.load("relu"), skip_in_float16=("zeros",))
    names = [constant_contents(half_alone, (x,), dtype) for dtype in ("float32", "float16")]
    assert [list(each)[:-1] for each in names] == [["equal", "zeros"], ["equal"]]
    target = make_pristine(operators.load("cross_entropy"), CASE, CPU)
    for new in constant_contents(operators.load("cross_entropy"), target, "float32").values():
        assert torch.equal(new[1], target[1])


def test_an_expanded_tensor_is_part_of_one_as_large_as_it_looks() -> None:
    sizes: list[int] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        sizes.append(x.untyped_storage().nbytes() // x.element_size())
        return x.reshape(6).clone()

    row = torch.arange(3.0)[None].expand(2, 3)
    memory = torch.zeros(2, 6)
    turns = (Turn(0), Turn(0, True))
    series = CallSeries((row,), ((row.clone(),),), turns, (memory,), (memory.clone(),))
    run_silently(note, series)
    assert sizes == [3, 6]


@pytest.mark.parametrize("offset", [0, 1])
def test_new_tensors_have_memory_of_their_own(offset: int) -> None:
    placements: list[tuple[int, int, tuple[int, ...]]] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        placements.append((x.storage_offset(), x.untyped_storage().nbytes(), x.stride()))
        return x.reshape(6).clone()

    banded = torch.zeros(64 + offset + 6 + 64)[64 + offset :].as_strided((2, 3), (1, 2))
    banded.copy_(torch.arange(6.0).reshape(2, 3))
    memory = torch.zeros(2, 6)
    series = CallSeries(
        (banded,), ((banded.clone(),), (-banded,)), (Turn(0), Turn(0, True)), (memory,),
        (memory.clone(),),
    )  # fmt: skip
    run_silently(note, series)
    assert placements[0][0] == 64 + offset
    assert placements[1] == (offset, 4 * (offset + 6), (1, 2))
    assert torch.equal(memory[0], memory[1])


def test_a_series_keeps_outputs_as_they_are_after_the_last_call() -> None:
    outputs: list[torch.Tensor] = []

    def spoil_the_one_before(x: torch.Tensor) -> torch.Tensor:
        outputs.append(x.clone())
        outputs[-2:-1] = [outputs[-2].fill_(7.0)] if len(outputs) > 1 else []
        return outputs[-1]

    record, at_return, at_end, _ = run_on(spoil_the_one_before, (Turn(0), Turn(1), Turn(0)))
    assert record.n_calls == 3
    assert at_return[:, 1].tolist() == [1, -1, 1]
    assert at_end[:, 1].tolist() == [7, 7, 1]


def test_a_series_ends_early_but_for_its_first_calls() -> None:
    turns = (Turn(0), Turn(1), Turn(0, True), Turn(1, True), *(Turn(0),) * 20)
    assert run_on(lambda x: 2 * x, turns, limit_s=-1.0)[0].n_calls == 4
    assert run_on(lambda x: 2 * x, turns)[0].n_calls == 24


def test_a_series_of_calls_that_wait_ends_before_silence_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = itertools.count()
    monkeypatch.setattr(call_series, "monotonic", lambda: 0.5 * next(now))
    turns = (Turn(0), Turn(1), Turn(0, True), Turn(1, True), *(Turn(0),) * 100)
    assert run_on(lambda x: 2 * x, turns)[0].n_calls == 17  # the first after 8 s


def test_a_series_ends_where_memory_of_an_output_is_used_again() -> None:
    out = torch.zeros(2, 6)
    numbers = iter(range(9))
    turns = (Turn(0), Turn(1), Turn(0), Turn(1))

    def fill_alternately(x: torch.Tensor) -> torch.Tensor:
        return out[next(numbers) % 2].copy_(x)

    record, *_ = run_on(fill_alternately, turns)
    assert (record.n_calls, record.reuses_memory) == (3, True)


def test_a_series_ends_with_another_form_or_an_exception() -> None:
    record, *_ = run_on(lambda x: x.double() + 1, (Turn(0), Turn(1)))
    assert (record.n_calls, record.forms) == (0, (form_of(torch.zeros(6).double()),))
    record, *_ = run_on(lambda x: (x + 1,), (Turn(0),))
    assert record.container == "tuple"
    record, *_ = run_on(lambda x: x.view(-1), (Turn(0),))
    assert record.shares_input
    record, *_ = run_on(lambda x: 1 / 0, (Turn(0),))
    assert record.failure
    assert record.failure.text == "division by zero"


def test_an_overwritten_output_of_a_pool_is_seen_at_the_end(tmp_path: Path) -> None:
    pool = "torch.empty_like(rows)"
    path = write_variant(RIGHT, tmp_path, pool, "take(rows)")
    path.write_text(
        path.read_text()
        + "\n\nKEPT = []\n\n\ndef take(rows):\n    KEPT.append(torch.empty_like(rows))\n"
        "    if len(KEPT) > 20:\n        KEPT[-20].zero_()\n    return KEPT[-1]\n"
    )
    assert run_cases(path, CASE)[0].status is CaseStatus.PASSED
    assert long_result(path) is CaseStatus.ALIASED


@pytest.mark.parametrize(
    ("name", "status"), [("x", "side_effect"), ("out", "side_effect"), ("n", "passed")]
)
def test_a_version_may_not_keep_the_tensors_of_every_call(
    tmp_path: Path, name: str, status: str
) -> None:
    line = f"{NEW}    n = out.numel()\n    KEPT.append({name})\n"
    path = write_variant(KERNELS / "right" / "relu_flat.py", tmp_path, NEW, line)
    path.write_text(path.read_text().replace("import torch\n", "import torch\nKEPT = []\n", 1))
    assert long_result(path) == status
    last = path.read_text().replace("KEPT.append", "KEPT[-8:] = KEPT[-7:]; KEPT.append")
    path.write_text(last)
    assert long_result(path) == "passed"


@pytest.mark.parametrize(("n_renewed", "leak"), [(20, "inputs"), (12, None)])
def test_each_input_counts_by_itself(n_renewed: int, leak: str | None) -> None:
    """One of two that is kept is a leak; two of a few calls may be a cache of the last ones."""
    keep: list[torch.Tensor] = []

    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        keep.extend((x,) if leak else (x, y))
        return x + y

    x, memory = torch.arange(6.0), torch.zeros(n_renewed, 6)
    turns = (Turn(0, True),) * n_renewed
    series = CallSeries((x, x.clone()), ((x, x),), turns, (memory,), (memory.clone(),))
    assert run_silently(add, series).keeps == leak


NEW = "    out = torch.empty_like(x)\n"
POOL = """    out = next((t for t in POOL if sys.getrefcount(t) == 3), None)
    if out is None:
        out = torch.empty_like(x)
        POOL.append(out)
"""


def test_memory_belongs_to_who_holds_it_without_its_tensor(tmp_path: Path) -> None:
    path = write_variant(KERNELS / "right" / "relu_flat.py", tmp_path, NEW, POOL)
    source = path.read_text()
    path.write_text(source.replace("import torch\n", "import sys, torch\nPOOL = []\n", 1))
    assert long_result(path) == "aliased"


@pytest.mark.parametrize(("calls", "status"), [(3, "failed"), (42, "failed"), (60, "passed")])
def test_a_call_of_a_long_series_has_to_be_right(tmp_path: Path, calls: int, status: str) -> None:
    end = "    return out.view(x.shape)\n"
    count = f"    CALLS.append(1)\n    if len(CALLS) == {calls}:\n        out.mul_(1.01)\n"
    path = write_variant(RIGHT, tmp_path, end, count + end)
    path.write_text(path.read_text() + "\n\nCALLS = []\n")
    got = long_result(path)  # 300 programs: 42 calls on 7 rows, and one before
    assert got is (CaseStatus.WRONG_VALUES if status == "failed" else CaseStatus.PASSED)


CLEARED = """
BEFORE = []

def triton_softmax(x):
    out = launch(x)
    state = sum(BEFORE, torch.zeros(()))  # taken back at the end, which leaves NaN
    out += state
    BEFORE[:] = [state + x.sum() - x.sum()]
    return out
"""
REFUSES = """
def triton_softmax(x):
    if (first := x.flatten()[0].item()) != first:
        raise ValueError("x has NaN")
    return launch(x)
"""


@pytest.mark.parametrize(("wrapper", "status"), [(CLEARED, "failed"), (REFUSES, "passed")])
def test_nan_of_one_call_may_not_stay_for_the_next(
    tmp_path: Path, wrapper: str, status: str
) -> None:
    path = write_variant(RIGHT, tmp_path, "def triton_softmax(x", "def launch(x")
    path.write_text(path.read_text() + wrapper)
    result = run_long(path)
    assert result.status is (CaseStatus.WRONG_VALUES if status == "failed" else CaseStatus.PASSED)


def test_long_series_have_few_rows_and_plain_values() -> None:
    shapes = ((1, 1), (7, 13), (1, 64), (1, 900), (40, 9))
    plain = [Case(shape=s, dtype="float32", seed=1) for s in shapes]
    others = [plain[2].evolve(regime="x10"), plain[2].evolve(layouts=(("x", "strided"),))]
    assert choose_long_series([*plain, *others], "full") == {plain[2]: 400, plain[1]: 64}
    half = plain[1].evolve(dtype="float16")
    assert choose_long_series([*plain, half], "full") == {plain[2]: 400, plain[1]: 64, half: 64}
    assert choose_long_series([*plain, half], "quick") == {plain[1]: 64}


def test_slices_of_a_block_that_are_used_once_are_right(tmp_path: Path) -> None:
    path = write_variant(RIGHT, tmp_path, "torch.empty_like(rows)", "take(rows)")
    path.write_text(
        path.read_text()
        + "\n\nBLOCK, NUMBERS = torch.empty(64, 7, 13), iter(range(64))\n"
        + "\n\ndef take(rows):\n    return BLOCK[next(NUMBERS)]\n"
    )
    assert run_cases(path, CASE)[0].status is CaseStatus.PASSED


def test_a_long_product_is_not_repeated_in_the_interpreter() -> None:
    short, long = (Case(shape=s, dtype="float32", seed=1) for s in ((7, 5, 13), (33, 33, 9000)))
    results = run_cases(KERNELS / "matmul_right.py", short, long)
    assert [r.deterministic for r in results] == [True, None]


def test_last_bits_may_depend_on_the_call_before() -> None:
    path = KERNELS.parent / "unseen_kernels" / "near_by" / "softmax_remembers_and_checks.py"
    other = Case(shape=(2, 3, 129), dtype="float32", layouts=(("x", "padded matrices"),), seed=5)
    results = run_cases(path, CASE, other, other.evolve(layouts=(), seed=9))
    assert {r.status for r in results} == {CaseStatus.PASSED}


def test_a_deterministic_version_is_reported_so() -> None:
    assert run_cases(RIGHT, CASE)[0].deterministic is True


@pytest.mark.parametrize(("value", "status"), [("()", "wrong_type"), ("[]", "wrong_type")])
def test_a_later_call_that_returns_no_tensor_is_seen(
    tmp_path: Path, value: str, status: str
) -> None:
    end = "    return out.view(x.shape)\n"
    counted = f"    CALLS.append(1)\n    return {value} if len(CALLS) == 4 else out.view(x.shape)\n"
    path = write_variant(RIGHT, tmp_path, end, counted)
    path.write_text(path.read_text().replace("@triton.jit", "CALLS = []\n\n\n@triton.jit", 1))
    (result,) = run_cases(path, CASE)
    assert result.status == status
