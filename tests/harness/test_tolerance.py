"""Tests of the allowed errors: no right algorithm is refused, no lower precision passes."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.benchmarks.algorithms import LOWER, RIGHT, draw_cases, run_algorithm
from tests.harness.kit import CPU, KERNELS, Recorder, job_for, run_validation, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.harness.correctness import oracle, validate_job
from triton_magics.harness.correctness.accumulated_sums import TruncatedProducts
from triton_magics.harness.correctness.calibration_cases import choose_calibration_cases
from triton_magics.harness.correctness.case_inputs import DTYPES, make_pristine
from triton_magics.harness.correctness.judgement import judge
from triton_magics.harness.correctness.perturbed_arithmetic import (
    PerturbedArithmetic,
    RandomSigns,
)
from triton_magics.harness.correctness.tolerance import ScaledTolerance
from triton_magics.model import BadgeCode, Case, CaseResult, CaseStatus, Tolerance, Validation

pytestmark = pytest.mark.in_turn

UNIT = torch.finfo(torch.float32).eps


def is_accepted(op: operators.Op, inputs: tuple[Any, ...], case: Case, got: torch.Tensor) -> bool:
    """Return whether the oracle accepts an output, without or with the conditioning."""
    expectations = oracle.iter_expected(op, inputs, case)
    return any(e.judge_outputs((got,))[0].is_correct for e in expectations)


def own_op(reference: Any, *dtypes: str, **changes: Any) -> operators.Op:
    """Return an op that computes `reference` of the inputs of relu."""
    relu = operators.load("relu")
    return dataclasses.replace(relu, reference=reference, dtypes=dtypes, exact=None, **changes)


def test_a_small_result_inside_may_be_flushed_to_zero() -> None:
    op = own_op(lambda x: torch.exp(x - 90) * 1e30, "float32")
    case = Case(shape=(64,), dtype="float32", seed=1)
    x = torch.rand(64)  # exp(x - 90) is subnormal in float32
    exact = (x.double() - 90).exp() * 1e30
    assert is_accepted(op, (x,), case, torch.zeros(64))
    assert is_accepted(op, (x,), case, exact.float())
    assert not is_accepted(op, (x,), case, 10 * exact.float())


# ------------------------------------------------------------------- where large values cancel


@pytest.mark.parametrize("regime", ["normal", "large", "mean_heavy", "negative"])
@pytest.mark.parametrize("shape", [(1, 1), (1000, 1)])
@pytest.mark.parametrize("algorithm", RIGHT["cross_entropy"])
def test_cross_entropy_of_one_class_may_round_the_log_sum(
    shape: tuple[int, ...], regime: str, algorithm: str
) -> None:
    op = operators.load("cross_entropy")
    for seed in range(3):
        case = Case(shape=shape, dtype="float32", regime=regime, seed=seed)
        inputs = make_pristine(op, case, CPU)
        got = run_algorithm(RIGHT["cross_entropy"][algorithm], inputs, torch.float32)
        assert is_accepted(op, inputs, case, got)
        scale = max(float(inputs[0].abs().max()), 1.0)
        assert not is_accepted(op, inputs, case, got + 100 * UNIT * scale)


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize("shape", [(1, 1000), (3, 4097), (127, 129)])
def test_sum_of_opposites_may_be_a_unit_of_its_terms_away_from_0(
    name: str, shape: tuple[int, ...]
) -> None:
    op, case = operators.load(name), Case(shape=shape, dtype="float32", seed=3)
    x = make_pristine(op, case, CPU)[0]
    half = x.shape[-1] // 2
    x[..., half : 2 * half] = -x[..., :half].flip(-1)
    x[..., 2 * half :] = 0
    for algorithm in RIGHT[name].values():
        assert is_accepted(op, (x,), case, run_algorithm(algorithm, (x,), torch.float32))
    wrong = x.abs().amax(-1) * 1e-3 / (x.shape[-1] if name == "mean" else 1)
    assert not is_accepted(op, (x,), case, wrong)


def test_vectors_that_cancel_may_keep_the_rounding_of_a_product() -> None:
    op, case = operators.load("vector_add"), Case(shape=(1025,), dtype="float32", seed=3)
    y = torch.randn(1025) * 3
    alpha = 1 / 3
    x = -(alpha * y)
    got = (x.double() + alpha * y.double()).float()  # in one step: without the rounding of alpha*y
    assert bool(got.any())
    assert is_accepted(op, (x, y, alpha), case, got)
    assert is_accepted(op, (x, y, alpha), case, x + alpha * y)
    assert not is_accepted(op, (x, y, alpha), case, x * 1e-5)


def test_gelu_far_below_zero_may_lose_what_1_plus_erf_cancels() -> None:
    op = operators.load("gelu")
    for value in (-4.5, -5.2, -7.0, -39.0):
        x = torch.tensor([[value]])
        case = Case(shape=(1, 1), dtype="float32", seed=1)
        for algorithm in RIGHT["gelu"].values():
            assert is_accepted(op, (x,), case, run_algorithm(algorithm, (x,), torch.float32))
        assert not is_accepted(op, (x,), case, x * 1e-3)


def test_underflow_to_zero_is_no_error() -> None:
    op, case = operators.load("vector_mul"), Case(shape=(4,), dtype="float32", seed=1)
    x = torch.full((4,), 1e-20)
    assert is_accepted(op, (x, x), case, torch.zeros(4))
    assert not is_accepted(op, (x, x), case, torch.full((4,), 1e-37))


# ------------------------------------------------------------------------------ the whole bank


@pytest.mark.parametrize("name", RIGHT)
def test_right_algorithms_are_accepted_in_a_full_plan(name: str) -> None:
    op, draw = operators.load(name), random.Random(name)
    cases = draw_cases(op, seed=1)
    for case in draw.sample(cases, min(24, len(cases))):
        inputs = make_pristine(op, case, CPU)
        for label, algorithm in RIGHT[name].items():
            got = run_algorithm(algorithm, inputs, DTYPES[case.dtype])
            assert is_accepted(op, inputs, case, got), (label, case)


@pytest.mark.parametrize(
    ("name", "label", "shape", "regime", "special"),
    [
        ("sum", "sequential", (3, 4097), "tiny", "equal"),
        ("sum", "backward", (1, 1000), "normal", "sums past 65504"),
        ("mean", "sequential", (3, 4097), "x0.1", "equal"),
        ("layer_norm", "sequential", (1, 1000), "negative", "equal"),
        ("matmul", "one k at a time", (3, 31, 1025), "normal", "products past 65504"),
        ("matmul", "one k at a time", (5, 7, 20_011), "normal", "products past 65504"),
    ],
)
def test_sum_may_have_the_error_of_its_partial_sums(
    name: str, label: str, shape: tuple[int, ...], regime: str, special: str
) -> None:
    op, n_refused = operators.load(name), 0
    for seed in range(6):
        case = Case(shape=shape, dtype="float32", regime=regime, special=special, seed=seed)
        inputs = make_pristine(op, case, CPU)
        (exact,) = oracle.evaluate(op, oracle.upcast(inputs))[1]
        got = run_algorithm(RIGHT[name][label], inputs, torch.float32)
        *_, expected = oracle.iter_expected(op, inputs, case, torch_outputs=(exact.float(),))
        assert expected.judge_outputs((got,))[0].is_correct, seed
        wrong = (exact + 40 * (got - exact).abs().max()).float()
        n_refused += not expected.judge_outputs((wrong,))[0].is_correct
    assert n_refused >= 4


@pytest.mark.parametrize("n_terms", [8_209, 20_011])
def test_tensor_cores_may_add_a_long_product_of_float32(n_terms: int) -> None:
    op, truncated = operators.load("matmul"), TruncatedProducts(16)  # two float16 for each number
    for seed in range(4):
        case = Case(shape=(5, 7, n_terms), dtype="float32", seed=seed)
        inputs = make_pristine(op, case, CPU)
        exact = inputs[0].double() @ inputs[1].double()
        got = truncated.multiply(*inputs)
        assert is_accepted(op, inputs, case, got.float())
        assert not is_accepted(op, inputs, case, (exact + 6 * (got - exact)).float())


@pytest.mark.parametrize("shape", [(3, 31, 1025), (5, 7, 20_011)])
def test_long_product_may_not_be_computed_in_tf32(shape: tuple[int, ...]) -> None:
    op, case = operators.load("matmul"), Case(shape=shape, dtype="float32", seed=3)
    inputs = make_pristine(op, case, CPU)
    got = run_algorithm(LOWER["matmul"]["TF32"], inputs, torch.float32)
    assert not is_accepted(op, inputs, case, got)


@pytest.mark.parametrize("value", [0.0, 0.003, -0.02, 0.4])
def test_log_of_a_sum_near_1_may_have_the_error_of_the_sum(value: float) -> None:
    op, case = operators.load("cross_entropy"), Case(shape=(1, 1), dtype="float32", seed=1)
    inputs = (torch.tensor([[value]]), torch.tensor([0]))
    for off in (-UNIT, UNIT / 2):
        assert is_accepted(op, inputs, case, torch.tensor(off))
    assert not is_accepted(op, inputs, case, torch.tensor(20 * UNIT))


@pytest.mark.parametrize(
    ("name", "label", "shape", "regime"),
    [
        ("matmul", "TF32", (65, 127, 129), "normal"),
        ("matmul", "half accumulator", (65, 127, 129), "normal"),
        ("attention", "TF32", (2, 3, 65, 32), "normal"),
        ("softmax", "TF32", (3, 4097), "normal"),
        ("softmax", "half sum", (127, 129), "normal"),
        ("sum", "half", (127, 129), "normal"),
        ("mean", "half", (127, 129), "normal"),
        ("layer_norm", "one pass", (127, 129), "mean_heavy"),
        ("layer_norm", "half", (127, 129), "normal"),
        ("cross_entropy", "half sum", (127, 129), "normal"),
        ("gelu", "tanh", (127, 129), "normal"),
        ("vector_mul", "half", (127, 129), "normal"),
    ],
)
def test_lower_precision_is_refused(
    name: str, label: str, shape: tuple[int, ...], regime: str
) -> None:
    op, refused = operators.load(name), 0
    for seed in range(5):
        case = Case(shape=shape, dtype="float32", regime=regime, seed=seed)
        inputs = make_pristine(op, case, CPU)
        got = run_algorithm(LOWER[name][label], inputs, torch.float32)
        refused += not is_accepted(op, inputs, case, got)
    assert refused == 5


def test_float64_op_may_not_be_computed_in_float32() -> None:
    op = own_op(lambda x: torch.softmax(x, -1), "float64", op_class="reduction")
    case = Case(shape=(7, 13), dtype="float64", seed=1)
    inputs = make_pristine(op, case, CPU)
    assert is_accepted(op, inputs, case, torch.softmax(inputs[0], -1))
    assert not is_accepted(op, inputs, case, torch.softmax(inputs[0].float(), -1).double())


# ------------------------------------------------------------------------ perturbed arithmetic


def test_perturbed_result_is_one_unit_away() -> None:
    x = torch.randn(1000, dtype=torch.float64)
    before = x.clone()
    with PerturbedArithmetic(UNIT, RandomSigns(1), coherent=False):
        product = x * x
        view = x.reshape(10, 100).T
    steps = (product / (before * before) - 1) / UNIT
    assert steps.abs().sub(1).abs().max() < 1e-6
    assert 400 < int((steps > 0).sum()) < 600
    assert torch.equal(x, before)
    assert torch.equal(view, before.reshape(10, 100).T)


def test_perturbed_formula_shows_what_a_fused_function_cancels() -> None:
    x = torch.full((3, 1), 1000.0, dtype=torch.float64)
    assert not torch.log_softmax(x, -1).any()
    with PerturbedArithmetic(UNIT, RandomSigns(1), coherent=True):
        perturbed = torch.log_softmax(x, -1)
    assert (perturbed.abs() / (1000 * UNIT) - 1).abs().max() < 0.01


# -------------------------------------------------------------------------------- exact dtypes


def test_integers_are_compared_bit_for_bit_beyond_53_bits() -> None:
    op = own_op(lambda x: x + 1, "int64")
    x = torch.tensor([2**60, -(2**60), 5])
    case = Case(shape=(3,), dtype="int64", seed=1)
    expected = oracle.compute_expected(op, (x,), case, None, None)
    assert expected.judge_outputs((x + 1,))[0].is_correct
    judged = expected.judge_outputs((x + torch.tensor([2, 1, 1]),))[0]
    assert judged.wrong is not None
    assert judged.wrong.tolist() == [True, False, False]
    assert (expected.tolerance.rtol, expected.tolerance.atol) == (0, 0)


def test_bools_are_compared_exactly() -> None:
    op, case = own_op(lambda x: x > 0, "float32"), Case(shape=(7, 13), dtype="float32", seed=1)
    (x,) = make_pristine(op, case, CPU)
    assert is_accepted(op, (x,), case, x > 0)
    assert not is_accepted(op, (x,), case, x > 0.1)


def test_integer_may_be_rounded_as_torch_or_the_oracle_does() -> None:
    op = own_op(lambda x: torch.round(x * 0.1).to(torch.int32), "float32")
    x = torch.tensor([5.0, 15.0, 25.0, 3.0])
    case = Case(shape=(4,), dtype="float32", seed=1)
    ours = torch.round(x.double() * 0.1).to(torch.int32)
    assert is_accepted(op, (x,), case, torch.round(x * 0.1).to(torch.int32))
    assert is_accepted(op, (x,), case, ours)
    assert not is_accepted(op, (x,), case, ours + torch.tensor([0, 0, 0, 1], dtype=torch.int32))


XOR = """
import torch

OP_CLASS = "elementwise"
DTYPES = ("int32", "bool")
SIZES = {"small": (7, 13), "medium": (9, 33), "large": (17, 65)}
SHAPES = ((5,), (1, 1))


def make_inputs(shape, dtype, device, generator):
    x = torch.randint(100, shape, device=device, generator=generator)
    y = torch.randint(100, shape, device=device, generator=generator)
    return (x % 2 == 0, y % 2 == 0) if dtype is torch.bool else (x.to(dtype), y.to(dtype))


def reference(x, y):
    return x ^ y
"""
XOR_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def xor_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x ^ y, mask=mask)


def triton_xor(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    xor_kernel[(triton.cdiv(n, 4096),)](x, y, out, n, BLOCK_SIZE=4096)
    return out
"""


@pytest.mark.parametrize(
    ("operator", "right"), [pytest.param("x ^ y", True, marks=pytest.mark.slow), ("x | y", False)]
)
def test_integer_and_bool_op_is_judged_exactly(operator: str, right: bool, tmp_path: Path) -> None:
    kernel = tmp_path / "xor.py"
    kernel.write_text(XOR_KERNEL.replace("x ^ y", operator))
    job = ValidateJob(
        op=OpRef.own("xor", XOR), version=version_of(kernel, "xor"), seed=7, plan="full"
    )
    verdict, _ = validate_job.run(job, Recorder())
    assert isinstance(verdict, Validation)
    assert verdict.passed is right
    assert verdict.is_conclusive is right
    assert verdict.badges == ()


# ------------------------------------------------------------------------- the user's tolerance


def judge_with(rtol: float | None, atol: float | None, off: float) -> tuple[bool, Tolerance]:
    op, case = operators.load("softmax"), Case(shape=(9, 33), dtype="float32", seed=5)
    inputs = make_pristine(op, case, CPU)
    expected = oracle.compute_expected(op, inputs, case, rtol, atol)
    got = expected.values[0] * (1 + off)
    return judge(got, expected.values[0], expected.allowed[0]).is_correct, expected.tolerance


def test_own_tolerance_is_honored_in_both_directions() -> None:
    assert judge_with(1e-7, None, 2e-7) == (False, Tolerance(rtol=1e-7, atol=0.0, origin="yours"))
    assert judge_with(1e-7, None, 5e-8)[0]
    accepted, loose = judge_with(1e-3, None, 9e-4)
    assert (accepted, loose.loosened) == (True, True)
    assert not judge_with(1e-3, None, 3e-3)[0]
    assert judge_with(None, 1.0, 0.9)[1].loosened


def test_looser_tolerance_only_widens_the_calibrated_one() -> None:
    op, case = operators.load("cross_entropy"), Case(shape=(1, 1), dtype="float32", seed=1)
    inputs = (torch.tensor([[3.7]]), torch.tensor([0]))
    got = torch.tensor(2e-7)
    assert is_accepted(op, inputs, case, got)
    loose = oracle.compute_expected(op, inputs, case, 1e-3, None)
    assert loose.judge_outputs((got,))[0].is_correct


def test_looser_tolerance_passes_and_is_not_conclusive() -> None:
    verdict = run_validation(KERNELS / "softmax_right.py", plan="quick", rtol=0.5)
    assert verdict.passed
    codes = {badge.code for badge in verdict.badges}
    assert {BadgeCode.LOOSENED_TOLERANCE, BadgeCode.UNCALIBRATED} <= codes
    assert not verdict.is_conclusive
    assert not verdict.coverage.is_full


# --------------------------------------------------------------------------------- calibration


def passed_result(case: Case, *, calibrated: bool) -> CaseResult:
    return CaseResult(case=case, status=CaseStatus.PASSED, error_share=0.1, calibrated=calibrated)


@pytest.mark.parametrize("name", [n for n in operators.names() if n != "dropout"])
def test_each_dtype_of_each_op_has_a_sensitive_case(name: str) -> None:
    op = operators.load(name)
    job: ValidateJob = job_for(KERNELS / "softmax_right.py")
    results = [
        passed_result(Case(shape=op.shapes[0], dtype=d, seed=1), calibrated=False)
        for d in op.dtypes
    ]
    cases = choose_calibration_cases(op, job, CPU, results)
    assert sorted(c.dtype for c in cases) == sorted(op.dtypes)
    conclusive = [passed_result(r.case, calibrated=True) for r in results]
    assert choose_calibration_cases(op, job, CPU, conclusive) == ()


# --------------------------------------------------------------------- further outputs, timed


def test_tolerance_of_further_outputs_keeps_the_floor() -> None:
    zeros = (torch.zeros(5, dtype=torch.float64),)
    floor = (torch.full((5,), 3e-7, dtype=torch.float64),)
    scaled = ScaledTolerance.of(zeros, floor, 1e-5, by_row=True)
    assert float(scaled.allowed_errors(zeros)[0].max()) == 3e-7
    ones = (torch.ones(5, dtype=torch.float64),)
    assert float(scaled.allowed_errors(ones)[0].max()) == pytest.approx(2e-5)


RARELY_SENSITIVE = """
import torch

DTYPES = ("float32",)
SHAPES = ((7, 13), (3, 129), (16, 32))
SIZES = {"small": (64, 64), "medium": (128, 128), "large": (256, 256)}


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator),)


def reference(x):
    first, second = x.flatten()[:2].abs()
    return x.sum(-1) * (first > 12 * second)  # else an answer of zeros
"""


def test_a_rare_sensitive_case_is_found_in_later_rounds(tmp_path: Path) -> None:
    """One case in twenty detects a lower precision: one round finds it for 13 of 20 seeds."""
    (path := tmp_path / "rare.py").write_text(RARELY_SENSITIVE)
    op = operators.load_file(path, "rare")
    results = [passed_result(Case(shape=(7, 13), dtype="float32", seed=1), calibrated=False)]
    jobs = [job_for(KERNELS / "softmax_right.py", seed=seed) for seed in range(20)]
    cases = [choose_calibration_cases(op, job, CPU, results) for job in jobs]
    assert sum(map(len, cases)) == 20
