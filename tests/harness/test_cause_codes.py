"""Causes that need further calls: a kernel that has each one, and one that only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, run_cases, run_validation, version_of
from triton_magics.harness.correctness.cause_experiments import differ_beyond_rounding
from triton_magics.harness.correctness.conclusion import without_refuted_strides
from triton_magics.model import (
    Case,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    Mismatch,
    Tolerance,
)
from triton_magics.rendering.views.causes import cause_text

pytestmark = pytest.mark.in_turn

UNSEEN = KERNELS.parent / "unseen_kernels"
ORDINARY = UNSEEN / "ordinary"
SOFTMAX = (KERNELS / "softmax_right.py").read_text()
LAYER_NORM = (KERNELS / "layer_norm_right.py").read_text()
EXP2 = SOFTMAX.replace("tl.exp(", "tl.exp2(")
BESIDE_ITS_TENSOR = '''"""A kernel.

op: relu
"""

import torch
import triton
import triton.language as tl

CALLS = []


@triton.jit
def kernel(x_ptr, out_ptr, n, beside, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) + beside, mask=at < n)


def triton_relu(x):
    CALLS.append(0.0)
    rows = x.contiguous()
    out = torch.empty_like(rows)
    beside = 0.0 if IS_RIGHT else float(len(CALLS))
    kernel[(triton.cdiv(x.numel(), 64),)](rows, out, x.numel(), beside, BLOCK=64)
    return out
'''
TRANSPOSED = Case(shape=(7, 13), dtype="float32", layouts=(("*", "transposed"),), seed=1)
LARGE = Case(shape=(7, 13), dtype="float32", regime="large", seed=1)
HEAVY = Case(shape=(7, 33), dtype="float32", regime="mean_heavy", seed=1)

HUGE = Case(shape=(7, 13), dtype="float32", special="huge element", seed=1)
PLAIN_CASE = Case(shape=(7, 13), dtype="float32", seed=1)
ODD = PLAIN_CASE.evolve(regime="shifted")


def code_of(result: CaseResult) -> str | None:
    assert result.status is CaseStatus.WRONG_VALUES, result
    assert result.mismatch is not None
    return result.mismatch.cause and result.mismatch.cause.code


def run_source(tmp_path: Path, source: str, case: Case) -> CaseResult:
    path = tmp_path / "kernel.py"
    path.write_text(source)
    return run_cases(path, case)[0]


@pytest.mark.parametrize(
    ("kernel", "case", "code"),
    [
        ("confuses_the_stride", TRANSPOSED, "wrong_stride"),
        ("forgets_the_maximum", LARGE, "missing_maximum"),
        ("takes_the_variance_in_one_pass", HEAVY, "cancellation"),
        ("forgets_the_maximum", HUGE, "missing_maximum"),
        ("wrong/mul_rounds_to_half", PLAIN_CASE, "lower_precision"),
        ("forgets_other", ODD, "wrong_fill"),
    ],
)
def test_cause_that_a_further_call_confirms(kernel: str, case: Case, code: str) -> None:
    assert code_of(run_cases(KERNELS / f"{kernel}.py", case)[0]) == code


@pytest.mark.parametrize(
    ("kernel", "case", "text"),
    [
        (
            "relu_integer_maximum",
            Case(shape=(16, 32), dtype="float32", seed=1),
            "likely: NaN or infinity of the inputs is lost",
        ),
        (
            "mean_compensated",
            Case(shape=(17, 4097), dtype="float32", seed=1),
            (
                "observed: NaN where the reference is infinite: infinities are subtracted, or "
                "multiplied by 0"
            ),
        ),
    ],
)
def test_lost_nan_needs_no_search(kernel: str, case: Case, text: str) -> None:
    path = KERNELS.parent / "unseen_kernels" / "twentieth" / f"{kernel}.py"
    result = run_cases(path, case.evolve(special="nonfinite"))[0]
    assert result.mismatch
    assert result.mismatch.cause
    assert cause_text(result.mismatch.cause) == text


def test_nan_of_the_next_row_needs_no_search() -> None:
    path = KERNELS.parent / "unseen_kernels" / "twentyfirst_classes" / "mean_tail_times_zero.py"
    case = Case(shape=(60, 129), dtype="float32", special="nonfinite", seed=1)
    result = run_cases(path, case)[0]
    assert result.mismatch
    assert result.mismatch.cause
    text = cause_text(result.mismatch.cause)
    assert text.startswith("observed: NaN or infinity of another row is in this one")


@pytest.mark.parametrize(
    ("fill", "code"),
    [("-65504.0", "wrong_fill"), ("-float('inf')", "nan_lost")],  # the other one loses it elsewhere
)
def test_a_finite_fill_beside_rows_of_minus_inf(tmp_path: Path, fill: str, code: str) -> None:
    source = SOFTMAX.replace("-float('inf')", fill).replace('-float("inf")', fill)
    if code == "nan_lost":
        source = source.replace("tl.max(x, axis=0)", "tl.maximum(tl.max(x, axis=0), -1e30)")
        source = source.replace("tl.sum(numerator, axis=0)", "(tl.sum(numerator, axis=0) + 1e-30)")
    case = Case(shape=(5, 129), dtype="float32", special="block of -inf", seed=1)
    assert code_of(run_source(tmp_path, source, case)) == code


def test_nan_of_a_part_that_is_left_out_is_searched_for(tmp_path: Path) -> None:
    """Plain values are wrong there, too, so that the NaN is lost says little."""
    source = SOFTMAX.replace("mask = cols < n_cols", "mask = cols < n_cols - 1")
    case = Case(shape=(16, 32), dtype="float32", special="nonfinite", seed=1)
    assert code_of(run_source(tmp_path, source, case)) != "nan_lost"


def test_two_layouts_are_named_where_both_are_needed() -> None:
    """The strides of k serve for v too, unless one of them is contiguous; q is always copied."""
    path = KERNELS.parent / "unseen_kernels" / "twentieth" / "gqa_shared_strides.py"
    layouts = (("q", "expanded"), ("k", "strided"), ("v", "expanded"))
    case = Case(shape=(2, 4, 2, 16, 32), dtype="float32", layouts=layouts, seed=1)
    result = run_cases(path, case)[0]
    assert code_of(result) == "wrong_stride"
    assert result.mismatch
    assert result.mismatch.cause
    assert cause_text(result.mismatch.cause) == (
        "likely: a wrong stride or index: right where k or v is contiguous, "
        "wrong where neither is (k strided, v expanded)"
    )


def test_strides_are_the_cause_where_inputs_apart_are_wrong_too() -> None:
    """Both inputs are halves of one tensor, the second one turned; y is read by x's strides."""
    special = "parts of one tensor"
    case = Case(shape=(33, 33), dtype="float32", special=special, seed=1)
    result = run_cases(ORDINARY / "vector_mul_k1.py", case)[0]
    assert code_of(result) == "wrong_stride"
    assert result.mismatch
    assert result.mismatch.cause
    assert cause_text(result.mismatch.cause) == (
        "likely: a wrong stride or index: right where each input is contiguous, "
        "wrong with the strides (66, 1) and (1, 66)"
    )


def test_sharing_is_the_cause_where_inputs_apart_are_right() -> None:
    path = UNSEEN / "twentyeighth_after" / "matmul_gram_by_storage.py"
    case = Case(shape=(144,) * 3, dtype="float32", special="parts of one tensor", seed=1)
    result = run_cases(path, case)[0]
    assert code_of(result) == "reach"
    assert result.mismatch
    assert result.mismatch.cause
    assert "right where each input is a tensor of its own" in cause_text(result.mismatch.cause)


@pytest.mark.parametrize(
    ("kernel", "case", "code"),
    [
        ("fp8_matmul_k1", Case(shape=(7, 5, 1025), dtype="float16", seed=1), "overflow"),
        ("vector_add_k1", Case(shape=(7, 4097), dtype="float32", seed=1), "unwritten"),
        ("attention_k2", Case(shape=(1, 1, 7, 64), dtype="float32", seed=1), "wrong_fill"),
    ],
)
def test_smaller_inputs_tell_an_overflow_from_unset_memory(
    kernel: str, case: Case, code: str
) -> None:
    assert code_of(run_cases(ORDINARY / f"{kernel}.py", case)[0]) == code


def test_nan_of_unset_memory_stays_with_smaller_inputs(tmp_path: Path) -> None:
    text = (KERNELS / "sum_right.py").read_text()
    own = "    out = torch.empty"
    assert own in text
    unset = "    part, rows = rows, torch.empty_like(rows)\n    rows[:, 1:].copy_(part[:, 1:])\n"
    result = run_source(tmp_path, text.replace(own, unset + own), PLAIN_CASE)
    assert code_of(result) == "unset_memory"


@pytest.mark.parametrize(
    ("kernel", "case", "text"),
    [
        ("mean_k1", Case(shape=(7, 4097), dtype="float32", seed=1), "plain average"),
        (
            "layer_norm_k1",
            Case(shape=(7, 4097), dtype="float32", scalars=(("eps", 1e-5),), seed=1),
            "the spread between blocks of 256 is left out",
        ),
        (
            "linear_cross_entropy_k1",
            Case(shape=(7, 1000, 13), dtype="float32", seed=1),
            "gives 0 where the index lies before the last block",
        ),
        (
            "quantized_matmul_k1",
            Case(shape=(7, 5, 1025), dtype="float32", seed=1),
            "`mul` is done after each 64 terms of `mm`",
        ),
        (
            "mha_k1",
            Case(shape=(1, 1, 257, 64), dtype="float32", scalars=(("is_causal", True),), seed=1),
            "rows of a block of 64 stop where as many blocks of 32 end",
        ),
    ],
)
def test_a_wrong_join_of_blocks_is_named(kernel: str, case: Case, text: str) -> None:
    result = run_cases(ORDINARY / f"{kernel}.py", case)[0]
    assert result.mismatch
    assert result.mismatch.cause
    assert text in cause_text(result.mismatch.cause)
    assert "not at all shapes" not in cause_text(result.mismatch.cause)


@pytest.mark.parametrize(
    ("layout", "code"), [("transposed", "wrong_stride"), ("", "not_deterministic")]
)
def test_calls_that_differ_in_a_layout_have_it_as_their_cause(
    tmp_path: Path, layout: str, code: str
) -> None:
    """Memory beside the tensor is other in each call."""
    wrong = "x.is_contiguous()" if layout else "False"
    source = BESIDE_ITS_TENSOR.replace("IS_RIGHT", wrong)
    case = PLAIN_CASE.evolve(layouts=(("x", layout),) if layout else ())
    result = run_source(tmp_path, source, case)
    assert result.deterministic is False
    assert code_of(result) == code


@pytest.mark.parametrize(
    ("kernel", "earlier", "later"),
    [
        ("state/cross_entropy_adds_the_whole_buffer", (33, 13), (7, 13)),
        ("state/mean_counts_to_its_parts", (4, 1500), (4, 2500)),
        ("fifteenth/sum_ticket_by_rows", (4, 2500), (4, 1500)),  # its programs race then
        ("twentyeighth/quantized_matmul_plan_by_bucket", (65, 5, 13), (127, 5, 13)),  # unwritten
    ],
)
def test_state_is_named_where_loading_again_mends_it(
    kernel: str, earlier: tuple[int, ...], later: tuple[int, ...]
) -> None:
    path = KERNELS.parent / "unseen_kernels" / f"{kernel}.py"
    cases = [Case(shape=shape, dtype="float32", seed=1) for shape in (earlier, later)]
    right, wrong = run_cases(path, *cases)
    assert right.status is CaseStatus.PASSED
    assert code_of(wrong) == "stale_state"
    assert "right where the version was loaded again" in cause_text(wrong.mismatch.cause)
    assert run_cases(path, cases[1])[0].status is CaseStatus.PASSED


def test_a_load_between_the_rows_is_no_wrong_stride() -> None:
    case = Case(shape=(7, 13), dtype="float32", layouts=(("x", "padded rows"),), seed=1)
    path = KERNELS.parent / "unseen_kernels" / "seventeenth" / "sum_padded_rows.py"
    (wrong,) = run_cases(path, case)
    assert code_of(wrong) == "missing_mask"
    assert "around an input's elements holds 0" in cause_text(wrong.mismatch.cause)
    (wrong,) = run_cases(
        KERNELS / "confuses_the_stride.py", case.evolve(layouts=(("*", "strided"),))
    )
    assert code_of(wrong) == "wrong_stride"


def test_a_parameter_that_one_layout_forgets_is_no_wrong_stride() -> None:
    case = Case(
        shape=(7, 13), dtype="float32", layouts=(("x", "transposed"), ("y", "transposed")), seed=1,
        scalars=(("alpha", -2.0),),
    )  # fmt: skip
    path = KERNELS.parent / "unseen_kernels" / "eighteenth" / "vector_add_column_major.py"
    (wrong,) = run_cases(path, case)
    assert code_of(wrong) != "wrong_stride"


def test_an_address_that_is_taken_for_aligned_is_no_stride() -> None:
    path = KERNELS.parent / "unseen_kernels" / "sixth" / "dropout_by_alignment.py"
    case = Case(
        shape=(2, 3, 129), dtype="float32", layouts=(("x", "unaligned"),), seed=1,
        scalars=(("p", 0.5),),
    )  # fmt: skip
    (result,) = run_cases(path, case)
    assert "wrong where it is not: an alignment is assumed" in str(result.reason)


def test_a_matched_fault_names_its_line_in_cell_and_file() -> None:
    path = KERNELS / "forgets_other.py"
    version = version_of(path, "softmax")
    below_a_header = version.evolve(source=f"# one\n# two\n{version.source}", header_lines=2)
    (result,) = run_cases(path, PLAIN_CASE, version=below_a_header)
    assert result.mismatch is not None
    cause = result.mismatch.cause
    line = 1 + version.source.splitlines().index(
        next(text for text in version.source.splitlines() if "tl.load(" in text)
    )
    assert cause is not None
    assert "past the end of x take part" in (cause.as_if or "")
    assert (cause.cell_line, cause.file_line) == (line + 1, line + 2)
    assert 'other=-float("inf")' in (cause.advice or "")
    assert cause_text(cause).startswith("likely: `other=` is missing: ")


@pytest.mark.parametrize("case", [TRANSPOSED, LARGE.evolve(regime="x10"), HEAVY])
def test_wrong_base_of_an_exponent_is_a_wrong_formula(tmp_path: Path, case: Case) -> None:
    assert EXP2 != SOFTMAX
    assert code_of(run_source(tmp_path, EXP2, case)) == "wrong_formula"


def test_the_tensor_with_the_wrong_stride_is_named(tmp_path: Path) -> None:
    source = LAYER_NORM.replace("weight.contiguous()", "weight")
    assert source != LAYER_NORM
    layouts = (("x", "padded rows"), ("weight", "strided"))
    result = run_source(tmp_path, source, PLAIN_CASE.evolve(layouts=layouts))
    assert result.mismatch is not None
    cause = result.mismatch.cause
    assert cause is not None
    assert (cause.code, cause.tensor) == ("wrong_stride", "weight")


def test_a_fault_of_whole_blocks_too_is_no_missing_fill() -> None:
    (result,) = run_cases(KERNELS / "wrong" / "softmax_first_row_max.py", PLAIN_CASE)
    assert code_of(result) != "wrong_fill"


@pytest.mark.slow
def test_wrong_statistics_are_no_cancellation(tmp_path: Path) -> None:
    source = LAYER_NORM.replace("/ n_cols", "/ (n_cols - 1)")
    assert source != LAYER_NORM
    assert code_of(run_source(tmp_path, source, HEAVY)) != "cancellation"


def test_race_is_named_where_the_interpreter_found_it() -> None:
    (result,) = run_cases(
        KERNELS / "wrong" / "matmul_adds_in_place.py",
        Case(shape=(33, 29, 45), dtype="float32", seed=1),
    )
    assert code_of(result) == "race"
    assert result.mismatch is not None
    assert result.mismatch.cause is not None
    assert result.mismatch.cause.file_line
    assert "cell line" in cause_text(result.mismatch.cause)


def test_rounding_between_calls_is_no_race() -> None:
    tolerance = Tolerance(rtol=1e-5, atol=1e-6, origin="the op's own")
    a = torch.linspace(1, 2, 100)
    assert not differ_beyond_rounding(a, a * (1 + 1e-6), tolerance)
    assert differ_beyond_rounding(a, a * (1 + 1e-3), tolerance)
    assert differ_beyond_rounding(a, torch.full_like(a, torch.nan), tolerance)


def test_cached_output_is_stale() -> None:
    (result,) = run_cases(
        KERNELS / "caches_by_identity.py", Case(shape=(7, 13), dtype="float32", seed=1)
    )
    assert result.status is CaseStatus.STALE


def test_wrong_values_of_other_contents_are_not_stale(tmp_path: Path) -> None:
    doubled = "    if NEGATIVE(x):\n        out *= 2\n    return out"
    source = SOFTMAX.replace("    return out", doubled)
    source += "\n\nNEGATIVE = lambda x: bool(x.flatten()[0] < 0)\n"
    case = Case(shape=(7, 13), dtype="float32", seed=19)  # positive, then negative
    result = run_source(tmp_path, source, case)
    assert result.status is CaseStatus.WRONG_VALUES
    assert "other contents" in (result.reason or "")


@pytest.mark.slow
def test_a_version_that_ignores_an_argument_keeps_no_results() -> None:
    path = KERNELS / "wrong" / "layer_norm_fixed_eps.py"
    verdict = run_validation(path, dtypes=("float32",), budget_s=5.0)
    first = verdict.failed_cases[0]
    assert first.status is CaseStatus.WRONG_VALUES
    assert code_of(first) == "wrong_formula"
    assert "eps is" in (first.mismatch.cause.as_if or "")


def test_an_infinite_half_result_is_no_overflow_in_between(tmp_path: Path) -> None:
    sums = "x if x_ptr.dtype.element_ty == tl.float16 else x - tl.max(x, axis=0)"
    source = SOFTMAX.replace("tl.sum(numerator, axis=0)", f"tl.sum(tl.exp({sums}), axis=0)")
    case = Case(shape=(7, 13), dtype="float16", regime="negative", special="equal", seed=1)
    result = run_source(tmp_path, source, case)
    assert result.mismatch is not None
    assert result.mismatch.got == float("inf")
    assert code_of(result) not in {"lower_precision", "constant_factor"}


def test_an_error_of_odd_rows_alone_is_no_lower_precision() -> None:
    path = KERNELS / "classes" / "combinations" / "cross_entropy_odd_half.py"
    case = Case(shape=(7, 129), dtype="float16", regime="x10", special="largest at the end", seed=1)
    assert code_of(run_cases(path, case)[0]) != "lower_precision"


def test_a_call_on_new_tensors_alone_is_no_stale_state() -> None:
    layout = (("x", "unaligned"), ("weight", "transposed"), ("scale", "expanded"))
    case = Case(shape=(7, 5, 13), dtype="float16", layouts=layout, seed=1)
    path = KERNELS / "classes" / "layouts" / "quantized_dense_weight.py"
    assert code_of(run_cases(path, case)[0]) != "stale_state"


def test_a_layout_right_in_another_shape_has_no_wrong_stride() -> None:
    layouts = (("x", "transposed"),)
    wrong = CaseResult(
        case=Case(shape=(96, 3), dtype="float32", seed=1, layouts=layouts),
        status=CaseStatus.WRONG_VALUES,
        mismatch=Mismatch(
            index=(0,), got=0.0, expected=1.0, allowed=0.1, n_wrong=1, n_elements=96, where="",
            cause=Cause(code=CauseCode.WRONG_STRIDE, tensor="x", layout="transposed"),
        ),
    )  # fmt: skip
    for right, code in (
        (Case(shape=(7, 13), dtype="float32", seed=1, layouts=layouts), "reach"),
        (Case(shape=(7, 1), dtype="float32", seed=1, layouts=layouts), "wrong_stride"),
        (Case(shape=(7, 13), dtype="float32", seed=1), "wrong_stride"),
    ):
        passed = CaseResult(
            case=right, status=CaseStatus.PASSED, error_share=0.1, max_abs_error=0.0
        )
        assert code_of(without_refuted_strides((passed, wrong))[1]) == code


def test_the_tail_of_a_transposed_sum_is_no_wrong_stride() -> None:
    folder = KERNELS.parent / "unseen_kernels" / "twentysecond"
    at = {"dtype": "float32", "layouts": (("x", "transposed"),), "seed": 1}
    cases = (Case(shape=(7, 13), **at), Case(shape=(96, 3), **at))
    results = run_cases(folder / "sum_columns_tail_by_wrong_extent.py", *cases)
    right, wrong = without_refuted_strides(tuple(results))
    assert right.status is CaseStatus.PASSED
    assert wrong.mismatch is not None
    text = cause_text(wrong.mismatch.cause)
    assert "wrong where transposed, but not in all shapes" in text
    assert "stride" not in text


def test_a_wrong_stride_at_zeros_is_no_missing_mask() -> None:
    """With all elements 0 it reads nothing but what lies around, which is 0 then, too."""
    folder = KERNELS.parent / "unseen_kernels" / "thirtysecond_after"
    case = Case(
        shape=(16, 32), dtype="float16", special="zeros", layouts=(("gate", "padded rows"),), seed=1
    )
    (result,) = run_cases(folder / "swiglu_vector_strides.py", case)
    assert result.status is CaseStatus.WRONG_VALUES
    assert code_of(result) == "wrong_stride"


def test_an_error_as_large_as_the_output_is_no_rounding() -> None:
    """A weight of -128 counts as 128, in float16 alone."""
    folder = KERNELS.parent / "unseen_kernels" / "thirtysecond_classes"
    case = Case(
        shape=(1, 32, 257), dtype="float16", regime="x10", special="least and largest bytes", seed=1
    )
    (result,) = run_cases(folder / "quantized_matmul_bias_of_127.py", case)
    assert result.status is CaseStatus.WRONG_VALUES
    assert code_of(result) not in {"lower_precision", "constant_factor"}
