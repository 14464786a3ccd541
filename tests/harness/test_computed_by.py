"""Find who computed an output: the version's kernels, torch, or other code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, field_of, run_cases
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.computed_by import Baseline
from triton_magics.harness.correctness.masked_memory import version_threads
from triton_magics.model import BadgeCode, Case, CaseStatus, TorchWork, Validation
from triton_magics.model.overall_verdict import share_work

pytestmark = pytest.mark.in_turn

FOLDER = KERNELS / "computed_by"
CHEATS = sorted((FOLDER / "cheats").glob("*.py"))
RIGHT = sorted((FOLDER / "right").glob("*.py"))


def test_the_last_bits_of_two_calls_may_agree_by_chance() -> None:
    out = torch.tensor([3.0, -120.0])
    baseline = Baseline((out, torch.tensor([7])), (0.0, 0.0))
    eps = torch.finfo(torch.float32).eps
    assert baseline.is_equal((out * (1 + 2 * eps), torch.tensor([7])))
    assert not baseline.is_equal((out * (1 + 40 * eps), torch.tensor([7])))
    assert not baseline.is_equal((out, torch.tensor([8])))


def _cases(path: Path) -> tuple[Case, ...]:
    """Return two awkward shapes of a kernel's op."""
    shapes = operators.load(field_of(path, "op")).shapes
    return tuple(Case(shape=shape, dtype="float32", seed=i) for i, shape in enumerate(shapes[2:4]))


def test_suppressed_launches_leave_no_state_to_later_calls() -> None:
    folder = Path(__file__).parents[1] / "faults" / "unseen_kernels" / "nineteenth"
    cases = [Case(shape=(n, 8192), dtype="float32", seed=n) for n in (9, 2)]
    results = run_cases(folder / "rms_norm_sums_take_turns_right.py", *cases)
    assert [r.status for r in results] == 2 * [CaseStatus.PASSED]


def test_a_small_result_leaves_the_host_its_lists() -> None:
    """Weight and bias of 32 columns are 64 numbers, as many as small results may have."""
    path = FOLDER / "right" / "layer_norm_in_a_module.py"
    (result,) = run_cases(path, Case(shape=(16, 32), dtype="float32", seed=20))
    assert (result.status, result.reason) == (CaseStatus.PASSED, None)


@pytest.mark.parametrize(
    ("kernel", "registers", "imports"),
    [
        ("softmax_in_a_custom_op", True, 1),
        ("mean_in_a_triton_op", True, 1),
        ("softmax_in_a_custom_op", False, 2),
    ],
)
def test_an_operator_of_the_version_is_registered_once(
    kernel: str, registers: bool, imports: int, tmp_path: Path
) -> None:
    """A second import would destroy the first one's operator."""
    source = (FOLDER / "right" / f"{kernel}.py").read_text()
    if not registers:
        source = source.replace(
            '@torch.library.custom_op("computed_by::right_soft", mutates_args=())', ""
        )
    note = tmp_path / "imports"
    (path := tmp_path / f"{kernel}.py").write_text(
        source + f"\nwith open({str(note)!r}, 'a') as file:\n    file.write('i')\n"
    )
    (result,) = run_cases(path, Case(shape=(7, 130), dtype="float32", seed=3))
    assert (result.status, note.read_text()) == (CaseStatus.PASSED, "i" * imports)


def test_a_copy_within_an_operator_sees_true_values() -> None:
    """Within an operator `contiguous` arrives as one operation, whose schema is that of a view."""
    path = KERNELS / "classes" / "torch_work" / "relu_custom_op.py"
    places = (("x", "permuted 2-0-1-3"),)
    permuted = Case(shape=(2, 3, 2, 33), dtype="float32", layouts=places, seed=4)
    (result,) = run_cases(path, permuted)
    assert (result.status, result.reason) == (CaseStatus.PASSED, None)


def _small(path: Path) -> Case:
    """Return the smallest benchmark size of a kernel's op."""
    shape = operators.load(field_of(path, "op")).sizes["small"]
    return Case(shape=shape, dtype="float32", size="small", seed=9)


@pytest.mark.parametrize("path", CHEATS, ids=[p.stem for p in CHEATS])
def test_work_outside_of_kernels_is_refused(path: Path) -> None:
    results = run_cases(path, *_cases(path))
    reasons = [(r.case.label, r.status, r.reason) for r in results]
    assert any(r.status is CaseStatus.NOT_TRITON for r in results), reasons


@pytest.mark.parametrize("path", RIGHT, ids=[p.stem for p in RIGHT])
def test_moving_data_outside_of_kernels_passes(path: Path) -> None:
    tiny = _small(path).evolve(shape=operators.load(field_of(path, "op")).shapes[0], size=None)
    results = run_cases(path, tiny, *_cases(path), _small(path))
    reasons = [(r.case.label, r.status, r.reason) for r in results]
    assert all(r.status is CaseStatus.PASSED for r in results), reasons


def test_a_table_for_a_scalar_may_be_cached(tmp_path: Path) -> None:
    """The launches are suppressed for scalars only whose kernels have run."""
    source = (FOLDER / "right" / "dropout_without_work.py").read_text()
    for old, new in (
        ("keep = tl.rand(seed, offsets) >= p", "keep = tl.rand(seed, offsets) >= tl.load(p_ptr)"),
        ("kernel(x_ptr, ", "kernel(x_ptr, p_ptr, "),
        ("x, out, x.numel()", "x, cached_limit(p), out, x.numel()"),
    ):
        assert source.count(old) == 1
        source = source.replace(old, new)
    path = tmp_path / "dropout.py"
    path.write_text(source + CACHED_LIMIT)
    first, second = (Case(shape=(7, 130), dtype="float32", seed=seed) for seed in (5, 5 ^ 0xA0))
    drawn = [make_pristine(operators.load("dropout"), case, CPU)[1] for case in (first, second)]
    assert drawn == [0.1, 0.5]
    results = run_cases(path, first, second)
    assert [r.status for r in results] == [CaseStatus.PASSED] * 2, [r.reason for r in results]


CACHED_LIMIT = """

LIMITS = {}


@triton.jit
def write_limit(limit_ptr, p):
    tl.store(limit_ptr, p)


def cached_limit(p):
    if p not in LIMITS:
        LIMITS[p] = torch.empty(1)
        write_limit[(1,)](LIMITS[p], p)
    return LIMITS[p]
"""


UNEVEN = """
import random

import torch
import triton
import triton.language as tl

CHANCE = random.Random(SEED)


@triton.jit
def kernel(x_ptr, out_ptr, n, more, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0) + tl.where(x > 1, more, 0.0), mask=offsets < n)


def triton_relu(x):
    out = torch.empty_like(x)
    more = 1.2e-5 if CHANCE.random() < 0.4 else 0.0
    kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), more, BLOCK=64)
    return out
"""


@pytest.mark.parametrize("seed", [3, 9, 18, 25, 40])
def test_a_kernel_that_races_is_not_called_other_code(seed: int, tmp_path: Path) -> None:
    """Some calls differ, by chance those with hidden memory."""
    path = tmp_path / "relu.py"
    text = UNEVEN.replace("SEED", str(seed))
    path.write_text('"""Race.\n\nop: relu\nstatus: failed\n"""\n' + text)
    (result,) = run_cases(path, Case(shape=(7, 13), dtype="float32", seed=1))
    assert result.status is not CaseStatus.NOT_TRITON, result.reason


def test_a_refusal_names_operation_share_and_line() -> None:
    path = FOLDER / "cheats" / "layer_norm_statistics.py"
    (result,) = run_cases(path, _small(path))
    line = next(i for i, t in enumerate(path.read_text().splitlines(), 1) if "var_mean" in t)
    assert result.error is not None
    assert result.error.file_line == line
    assert str(result.reason).startswith(f"cell line {line + 1}: torch computes 14 % of the work")
    assert result.torch_work[0].operation == "var_mean"
    assert result.torch_work[0].share == pytest.approx(1 / 7)


def test_the_thread_of_a_progress_bar_is_none_of_the_version() -> None:
    monitor = pytest.importorskip("tqdm._monitor")
    thread = monitor.TMonitor(SimpleNamespace(_instances=()), 60.0)
    try:
        assert thread.is_alive()
        assert thread.name not in version_threads()
    finally:
        thread.exit()


@pytest.mark.parametrize("kernel", ["softmax_in_a_pool", "softmax_in_a_standing_pool"])
def test_work_in_another_thread_names_the_thread(kernel: str) -> None:
    path = FOLDER / "cheats" / f"{kernel}.py"
    result = run_cases(path, *_cases(path))[0]
    assert "perhaps in the thread ThreadPoolExecutor-" in str(result.reason)


@pytest.mark.parametrize(
    ("kernel", "operation", "share"),
    [
        ("matmul_split_k_in_torch", "sum", 1 / 256),
        ("sum_joins_partial_sums", "sum", 1 / 256),
        ("cross_entropy_mean_in_torch", "mean", 1 / 1024),
    ],
)
def test_joining_partial_results_is_reported_with_its_share(
    kernel: str, operation: str, share: float
) -> None:
    path = FOLDER / "right" / f"{kernel}.py"
    (result,) = run_cases(path, _small(path))
    assert [w.operation for w in result.torch_work] == [operation]
    assert result.torch_work[0].share == pytest.approx(share)


def test_work_whose_result_is_not_used_is_not_counted() -> None:
    path = FOLDER / "right" / "gelu_with_unused_work.py"
    (result,) = run_cases(path, _small(path))
    assert result.status is CaseStatus.PASSED
    assert result.torch_work == ()


def test_the_largest_share_of_each_place_gets_a_badge() -> None:
    path = FOLDER / "right" / "sum_joins_partial_sums.py"
    results = run_cases(path, *_cases(path), _small(path))
    computed_by = share_work(tuple(results))
    assert computed_by is not None
    assert [w.operation for w in computed_by.torch_work] == ["sum"]
    assert computed_by.kernel_share == pytest.approx(1 - 1 / 256)


def test_a_share_of_gpu_time_in_an_older_record_is_read() -> None:
    fields = {
        "op": "relu", "version": "v1", "attempt": 1, "sha256": "", "status": "failed",
        "plan": "full", "seed": 1, "dtypes": ["float32"], "triton_share": 0.75,
    }  # fmt: skip
    validation = Validation.model_validate(fields)
    assert validation.computed_by is not None
    assert (validation.computed_by.kernel_share, validation.computed_by.measure) == (
        0.75,
        "gpu_time",
    )
    assert validation.badges == ()


def test_a_badge_names_the_operations_and_their_share() -> None:
    work = (TorchWork(operation="sum", line=3, share=0.004),)
    fields = {
        "op": "relu", "version": "v1", "attempt": 1, "sha256": "", "status": "failed",
        "request": {"seed": 1}, "dtypes": ["float32"], "declared_dtypes": ["float32"],
        "computed_by": {"kernel_share": 0.996, "torch_work": work},
    }  # fmt: skip
    (badge,) = Validation.model_validate(fields).badges
    assert badge.code is BadgeCode.TORCH_WORK
    assert badge.params["operations"] == ("sum",)
    assert badge.params["share"] == pytest.approx(0.004)
