"""Cases beside the design: what they contain, and kernels that only they show to be wrong."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, Recorder, field_of, job_for, run_cases
from tests.harness.test_plan import plan_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness import plan_job
from triton_magics.harness.correctness.case_inputs import make_inputs, make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.parameter_cases import parameter_cases
from triton_magics.harness.correctness.shape_classes import representatives
from triton_magics.harness.correctness.value_cases import MANY_ROWS, MANY_ROWS_INTERPRETED
from triton_magics.model import BESIDE, Case, CaseStatus, Plan

pytestmark = pytest.mark.in_turn

UNSEEN = Path(__file__).parent.parent / "faults" / "unseen_kernels"
INTERPRETER = DeviceFacts(is_interpreted=True, refused={"bfloat16": "it computes it wrongly"})


def _slow(kernel: str, words: str) -> Any:
    """Return a kernel whose cases take the interpreter over ten seconds."""
    return pytest.param(kernel, words, marks=pytest.mark.slow)


WRONG = (
    ("set_a/pitch", "padded matrices"),
    ("thirtyfirst_after/gelu_view_rows", "2x3x1032 float16, x padded matrices"),
    ("thirtyfirst_after/softmax_split_chunk_max", "7x16385 float32, parts between -inf"),
    ("fifth/matmul_packed_transpose", "padded columns"),
    ("fifth/mean_expanded_rows_once", "expanded rows"),
    ("set_a/gate", "expanded rows"),
    ("set_a/sparse", "nonfinite beside zeros"),
    ("fifth/vector_mul_skips_zero_blocks", "nonfinite beside zeros"),
    _slow("fifth/softmax_maximum_stays_with_the_program", "rows of every kind"),
    ("set_a/twin", "one tensor and its transpose"),
    ("twentythird/vector_add_same_tensor", "one tensor for several inputs, nonfinite"),
    ("twentythird/softmax_lazy_rescale", "rows that rise steadily"),
    ("twentythird_after/sum_fixed_point_of_first_block", "rows that grow steadily"),
    ("twentythird_after/swiglu_square_of_same", "inputs, squares past the largest number"),
    ("twentythird_after/attention_maximum_on_diagonal", "inputs, rows of many scales"),
    ("twentythird_after/fp8_matmul_mirrored_tiles", "inputs, rows of many scales"),
    ("twentythird_wider/attention_values_are_keys", "its transpose, but for the first"),
    ("twentythird_wider/rms_norm_factor_from_exponent", "block of tiny numbers"),
    ("twentythird_wider/softmax_masked_end_by_bisection", "parts between -inf"),
    ("twentythird_wider/vector_add_interleaved_either_order", "in turn, the last input first"),
    ("twentythird_wider/sum_columns_in_16_bits", "step 9"),
    _slow("twentyfourth/layer_norm_parts_of_one_weight", "7x16385"),
    _slow("twentyfourth/mha_maximum_of_last_tile", "heads of two scales"),
    _slow("twentyfourth_after/mha_cleared_by_rescale", "NaN in some parts"),
    ("twentyfourth_after/sum_stops_at_infinity", "composed rows, nonfinite"),
    ("eighth/softmax_maximum_by_integer_atomics", "composed rows"),
    _slow("eighth/sum_stops_at_the_padding", "composed rows"),
    ("fifth/cross_entropy_probability_has_a_floor", "composed rows"),
    ("twentythird_after/rope_row_stride_of_one_position", "loose lengths of one"),
    ("sixteenth/swiglu_packed_halves", "the last input first"),
    ("tenth/attention_shared_key_head", "k expanded matrices"),
    ("seventeenth/mha_packed_projection", "projection, but for the last input"),
    ("seventeenth/vector_add_same_pointer", "one tensor and its transpose"),
    ("seventeenth/vector_mul_row_factor", "expanded and strided"),
    ("twelfth/vector_mul_scalar_factor", "expanded but rows"),
    ("twelfth/rms_norm_collapsed_batches", "2x3x2x33"),
    ("twelfth/vector_add_without_second", "alpha=0.0"),
    ("twelfth/mean_equal_rows", "rows of every kind, nonfinite too"),
    ("eleventh/matmul_output_like_left", "16x16x16"),
    ("twentyseventh/matmul_gram_prefix", "some of its rows"),
    ("twentyeighth/matmul_gram_by_pointer", "in other steps"),
    ("twentyeighth_after/matmul_gram_by_storage", "144x144x144"),
    ("twentyseventh/swiglu_packed_halves", "the last input first"),
    _slow("twentyeighth/attention_skips_light_tiles", "float16, attention sink"),
    ("twentyeighth_after/gqa_values_are_keys", "head, repeated"),
    _slow("thirtieth/matmul_strassen", "256x256x256 float32, rows of many scales"),
    _slow("thirtieth/cross_entropy_fixed_point", "float32, rows of many scales"),
    _slow("thirtieth/gqa_parts_in_half", "weighted sums past 65504"),
    ("twentyninth/sum_leading_dimensions", "permuted 0-1-3-2 gaps 0-3-0-0"),
    _slow("twentyseventh/gqa_group_division", "1x15x1x385x16 float32"),
    ("twentieth/rms_norm_default_eps", "tiny, eps=0.0"),
    ("twentieth/cross_entropy_fixed_point", "nonfinite"),
    _slow("twentieth/linear_cross_entropy_skips_tiles", "half of the products"),
    ("twentyfirst/softmax_first_block_masked", "3x8209"),
    _slow("twentyfirst/cross_entropy_low_block_skipped", "3x70001"),
    ("twentyfirst_after/rms_norm_empty_first_block", "3x8209"),
    ("twentyfirst_after/mha_packed_head_slice", "parts of some heads"),
    ("twentyfirst/rope_four_heads_across_batches", "3x5x7x13"),
    ("twentyfirst/swiglu_halves_of_sliced_projection", "parts of a slice of one tensor"),
    _slow("twentyfirst/mha_unmasked_tiles_of_wide_heads", "1x1x97x256 float32, is_causal=True"),
    ("tenth/softmax_plans_by_bits", "7x51"),  # 512 columns, then 513
    ("seventh/mean_transposed_is_dense", "transposed and strided"),
    ("seventh/quantized_matmul_last_group", "577x129x5"),
    _slow("twentysecond_after/attention_split_zero_lse", "products far below zero"),
    ("twentysecond_after/vector_add_span_is_numel", "expanded row of a matrix"),
    ("twentysecond_after/gqa_packed_batch_pitch", "parts of a slice of one projection"),
    _slow("thirtythird/cross_entropy_product", "9x70001"),
    ("thirtyfourth/rms_norm_constants", "tiny, eps="),
    ("thirtysecond/rope_four_heads", "4x3x7x13 float"),
    ("thirtysecond_last/gelu_block_of_tail", "16x32 float32, NaN beside values past -12.0"),
    ("thirtysecond_classes/relu_pairs_batch_stride", "3x5x1032 float16, x batches behind headers"),
    ("thirtysecond_classes/rms_norm_order_not_inverted", "2x3x2x33 float32, x permuted 1-2-0-3"),
    _slow("thirtysecond_classes/softmax_split_stores_guard", "parts at levels and -inf 104.0"),
    _slow("thirtysecond_classes/lce_lazy_rescale_limit", "products at levels"),
    ("twentysecond/rope_sequence_first_rows", "interleaved heads and padded batches"),
    ("twentysecond/cross_entropy_chunks_in_dtype", "3x8209 float16, rows at -20000"),
    _slow("twentysecond/gqa_grouped_order", "1x2x1x545x16"),
    _slow("fifth/gqa_empty_part_has_maximum_zero", "products far below zero"),
    _slow("fifth/attention_leaves_out_light_tiles", "one row as heavy"),
)
RIGHT = {
    "relu": "right/relu_flat.py",
    "layer_norm": "layer_norm_right.py",
    "cross_entropy": "right/cross_entropy_rows.py",
    "linear_cross_entropy": "linear_cross_entropy_right.py",
    "rms_norm": "classes/layouts/rms_norm_three_strides.py",
    "matmul": "right/matmul_grouped.py",
    "gelu": "right/gelu_flat.py",
    "mean": "right/mean_row.py",
    "vector_mul": "right/mul_flat.py",
    "softmax": "softmax_right.py",
    "vector_add": "vector_add_right.py",
    "gqa": "gqa_right.py",
    "mha": "right/mha_flash.py",
    "attention": "right/attention_flash.py",
    "quantized_matmul": "quantized_matmul_right.py",
    "swiglu": "swiglu_right.py",
    "rope": "rope_right.py",
    "sum": "sum_right.py",
    "fp8_matmul": "fp8_matmul_right.py",
}


def cases_with(path: Path, words: str) -> list[Case]:
    plan = plan_cases(operators.load(field_of(path, "op")), job_for(path), INTERPRETER)
    return [case for case in plan.cases if words in case.label]


def first_failed(path: Path, cases: Sequence[Case]) -> Case | None:
    """Return a case in which a kernel fails: alone, the small ones first, or after the others."""
    for case in sorted(cases, key=lambda case: math.prod(case.shape)):
        if run_cases(path, case)[0].status.failed:
            return case
    return next((r.case for r in run_cases(path, *cases) if r.status.failed), None)


@pytest.mark.parametrize(("kernel", "words"), WRONG)
def test_a_case_beside_the_design_shows_the_fault(kernel: str, words: str) -> None:
    wrong = UNSEEN / f"{kernel}.py"
    shown = first_failed(wrong, cases_with(wrong, words))
    assert shown, "passed in all of them"
    right = KERNELS / RIGHT[field_of(wrong, "op")]
    assert run_cases(right, shown)[0].status is CaseStatus.PASSED


@pytest.mark.parametrize(
    ("op", "special", "strides"),
    [
        ("swiglu", "parts of a slice of one tensor", (3 * 3 * 66, 3 * 66, 66, 1)),
        ("swiglu", "parts of one tensor", (3 * 2 * 66, 2 * 66, 66, 1)),
        ("mha", "parts of a slice of one projection", (3 * 9 * 33, 33, 9 * 33, 1)),
        ("mha", "parts of some heads of one projection", (2 * 12 * 33, 33, 12 * 33, 1)),
        ("gqa", "parts of a slice of one projection", (3 * 5 * 33, 33, 5 * 33, 1)),
    ],
)
def test_parts_of_a_slice_have_more_rows_between(
    op: str, special: str, strides: tuple[int, ...]
) -> None:
    shape = (2, 3, 1, 2, 33) if op == "gqa" else (2, 3, 2, 33)  # with heads of keys
    case = Case(shape=shape, dtype="float32", special=special, seed=3)
    inputs = make_inputs(operators.load(op), case, CPU)
    parts = [x for x in inputs.arguments if isinstance(x, torch.Tensor)]
    assert {x.stride() for x in parts} == {strides}
    assert all(torch.equal(x, own) for x, own in zip(parts, inputs.pristine, strict=False))


def test_inputs_lie_side_by_side_in_one_tensor() -> None:
    case = Case(shape=(64, 64, 64), dtype="float32", special="parts of one tensor", seed=3)
    inputs = make_inputs(operators.load("matmul"), case, CPU)
    a, b = inputs.arguments
    assert (a.stride(), b.stride()) == ((128, 1), (1, 128))  # the second one is transposed
    assert b.data_ptr() - a.data_ptr() == 64 * 4
    assert a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    assert all(map(torch.equal, inputs.arguments, inputs.pristine))
    assert not torch.equal(a, b.mT)
    case = case.evolve(shape=(2, 3, 5, 16))
    q, k, v = make_inputs(operators.load("attention"), case, CPU).arguments
    assert q.stride() == k.stride() == v.stride() == (3 * 5 * 48, 5 * 48, 48, 1)
    assert v.data_ptr() - q.data_ptr() == 2 * 16 * 4


def test_an_unused_part_lies_before_the_last_input() -> None:
    special = "parts of one tensor, one unused"
    case = Case(shape=(2, 3, 5, 16), dtype="float32", special=special, seed=3)
    inputs = make_inputs(operators.load("attention"), case, CPU)
    q, k, v = inputs.arguments
    assert q.stride() == k.stride() == v.stride() == (3 * 5 * 64, 5 * 64, 64, 1)
    places = [(x.data_ptr() - q.data_ptr()) // 4 for x in (q, k, v)]
    assert places == [0, 16, 48]
    assert all(map(torch.equal, inputs.arguments, inputs.pristine))


def test_tables_lie_side_by_side_in_rows_that_are_longer() -> None:
    special = "parts of one tensor, the last unused"
    case = Case(shape=(1, 2, 7, 16), dtype="float32", special=special, seed=3)
    x, cos, sin = make_inputs(operators.load("rope"), case, CPU).arguments
    columns = cos.shape[-1]
    assert x.is_contiguous()  # no other input is like it
    assert cos.stride() == sin.stride() == (3 * columns, 1)
    assert sin.data_ptr() - cos.data_ptr() == columns * 4
    wrong = UNSEEN / "fourteenth/rope_adjacent_tables.py"
    assert run_cases(wrong, case)[0].status.failed


def test_parts_may_be_in_the_opposite_order() -> None:
    special = "parts of one tensor, the last input first"
    case = Case(shape=(3, 16), dtype="float32", special=special, seed=3)
    gate, up = make_inputs(operators.load("swiglu"), case, CPU).arguments
    assert gate.stride() == up.stride() == (32, 1)
    assert gate.data_ptr() - up.data_ptr() == 16 * 4


def test_weights_of_bytes_are_zero_beside_nan() -> None:
    op = dataclasses.replace(operators.load("quantized_matmul"), defined_for_nonfinite=True)
    path = KERNELS / "quantized_matmul_right.py"
    cases = plan_cases(op, job_for(path), INTERPRETER).cases
    own = {case.special: case for case in cases if "beside zeros" in case.special}
    assert sorted(own) == [f"nonfinite beside zeros in input {i}" for i in (0, 1)]
    x, weight, _ = make_pristine(op, own["nonfinite beside zeros in input 1"], CPU)
    assert not weight.any()
    assert not x.isfinite().all()


def test_parts_of_a_projection_lie_side_by_side_in_each_position() -> None:
    case = Case(shape=(2, 4, 16, 32), dtype="float32", special="parts of one projection", seed=3)
    whole = torch.empty(2, 16, 3, 4, 32)
    expected = [part.transpose(1, 2).stride() for part in whole.unbind(2)]
    q, k, v, _ = make_inputs(operators.load("mha"), case, CPU).arguments
    assert [x.stride() for x in (q, k, v)] == expected
    assert [(x.data_ptr() - q.data_ptr()) // 4 for x in (q, k, v)] == [0, 128, 256]
    alone = case.evolve(special="parts of one projection, but for the last input")
    q, k, v, _ = make_inputs(operators.load("mha"), alone, CPU).arguments
    assert [x.stride() for x in (q, k)] == expected[:2]
    assert v.is_contiguous()
    assert v.untyped_storage().data_ptr() != q.untyped_storage().data_ptr()


@pytest.mark.parametrize(("which", "pair", "alone"), [("first", (1, 2), 0), ("last", (0, 1), 2)])
def test_all_inputs_but_one_are_one_tensor(which: str, pair: tuple[int, int], alone: int) -> None:
    special = f"one tensor for several inputs, but for the {which}"
    case = Case(shape=(2, 4, 16, 32), dtype="float32", special=special, seed=3)
    inputs = make_inputs(operators.load("mha"), case, CPU).arguments
    assert inputs[pair[0]] is inputs[pair[1]]
    assert not torch.equal(inputs[alone], inputs[pair[0]])
    two = {c.special for c in cases_with(UNSEEN / "set_a/twin.py", "one tensor")}
    assert special not in two  # of two inputs, which would have none in common


def test_a_factor_has_two_values_where_inputs_share_memory() -> None:
    own = cases_with(UNSEEN / "seventeenth/vector_add_same_pointer.py", "and its transpose")
    small = [case for case in own if case.shape == (16, 16)]
    assert len(small) == len({case.scalars for case in small}) == 2
    assert [case.shape for case in own if case not in small] == [(144, 144)]


def test_a_factor_has_all_values_for_one_tensor_with_infinities() -> None:
    own = cases_with(UNSEEN / "seventeenth/vector_add_same_pointer.py", "several inputs, nonfinite")
    assert {dict(case.scalars)["alpha"] for case in own} == {1.0, 0.1, -2.0}
    x, y, _ = make_inputs(operators.load("vector_add"), own[0], CPU).arguments
    assert x is y
    assert (x.isinf().any(), x.isnan().any(), x.isfinite().any()) == (True, True, True)


def test_columns_of_parts_take_turns() -> None:
    special = "parts of one tensor, their columns in turn"
    case = Case(shape=(16, 32), dtype="float32", special=special, seed=1)
    reverse = case.evolve(special=f"{special}, the last input first")
    op = operators.load("vector_mul")
    for own, first in ((case, 0), (reverse, 1)):
        x, y = make_inputs(op, own, CPU).arguments
        assert x.stride() == y.stride() == (64, 2)
        distance = x.storage_offset() - y.storage_offset()
        assert distance == (1 if first else -1)


def test_a_block_is_a_jump_from_the_others() -> None:
    case = Case(shape=(12, 64), dtype="float32", special="block of tiny numbers", seed=3)
    (x,) = make_pristine(operators.load("sum"), case, CPU)
    sizes = x.abs().reshape(12, 2, 32).amax(-1)
    jumps = sizes[:, 0] / sizes[:, 1]
    assert (jumps < 1e-18).any()
    assert (jumps > 1e18).any()


def test_parts_between_minus_infinity_are_late_or_have_a_hole() -> None:
    case = Case(shape=(12, 64), dtype="float32", special="parts between -inf", seed=3)
    (x,) = make_pristine(operators.load("softmax"), case, CPU)
    is_finite = x.isfinite()
    assert not is_finite[:, 56:].any()
    forms = {tuple(row.int().diff().nonzero().flatten().tolist()) for row in is_finite}
    assert forms == {(39, 55), (15, 31, 55), (55,)}


def test_rows_rise_or_fall_in_steps_that_no_block_shows() -> None:
    case = Case(shape=(3, 8209), dtype="float32", special="rows that rise steadily", seed=3)
    (x,) = make_pristine(operators.load("softmax"), case, CPU)
    assert (x[0, -1] - x[0, 0] > 119, x[1, 0] - x[1, -1] > 119) == (True, True)
    blocks = x[:, :8192].reshape(3, 16, 512).amax(-1)
    assert float(blocks.diff(dim=-1).abs().max()) < 8.0


@pytest.mark.parametrize("op", ["dropout", "vector_add"])
def test_cases_for_a_shape_have_parameters_that_count(op: str) -> None:
    own = [case for case in plan_of(op).cases if case.shape_class == BESIDE or case.extent]
    values = {value for case in own for _, value in case.scalars}
    assert len(values) >= 2
    assert 0.0 not in values  # with p = 0, or a factor of 0, x itself is returned


def test_parts_of_one_tensor_are_no_transpose_of_each_other() -> None:
    case = Case(shape=(65, 65, 65), dtype="float32", special="parts of one tensor", seed=3)
    assert run_cases(UNSEEN / "tenth/matmul_gram_of_one_buffer.py", case)[0].status.failed
    (right,) = run_cases(KERNELS / RIGHT["matmul"], case)
    assert right.status is CaseStatus.PASSED


def test_zeros_are_in_each_tensor_beside_nonfinite_ones() -> None:
    op = operators.load("vector_mul")
    for zero, other in ((0, 1), (1, 0)):
        special = f"nonfinite beside zeros in input {zero}"
        case = Case(shape=(16, 32), dtype="float32", special=special, seed=zero)
        arguments = make_inputs(op, case, CPU).arguments
        assert not arguments[zero].any()
        assert not arguments[other].isfinite().all()
    planned = {c.special for c in cases_with(UNSEEN / "set_a/sparse.py", "beside zeros")}
    assert planned == {f"nonfinite beside zeros in input {i}" for i in (0, 1)}


@pytest.mark.parametrize(
    ("op", "shape", "strides"),
    [
        ("matmul", (5, 5, 5), [(10, 1), (1, 5)]),
        ("attention", (2, 3, 5, 4), [(180, 60, 12, 1), (180, 60, 8, 1), (180, 60, 4, 1)]),
    ],
)
def test_inputs_have_rows_of_one_tensor_in_other_steps(
    op: str, shape: tuple[int, ...], strides: list[tuple[int, ...]]
) -> None:
    values = "rows of one tensor, those of each input in other steps"
    case = Case(shape=shape, dtype="float32", seed=3, special=values)
    inputs = make_inputs(operators.load(op), case, CPU)
    tensors = [x for x in inputs.arguments if isinstance(x, torch.Tensor)]
    assert [x.stride() for x in tensors] == strides
    assert len({x.data_ptr() for x in tensors}) == 1
    pairs = zip(tensors, inputs.pristine, strict=False)
    assert all(torch.equal(x, pristine) for x, pristine in pairs)


@pytest.mark.parametrize("shape", [(7, 129, 13), (129, 5, 13)])
def test_an_input_is_rows_of_a_larger_one(shape: tuple[int, ...]) -> None:
    case = Case(shape=shape, dtype="float32", seed=3, special="one tensor and some of its rows")
    inputs = make_inputs(operators.load("matmul"), case, CPU)
    a, b = inputs.arguments
    n = min(shape[:2])
    assert a.data_ptr() == b.data_ptr()
    assert a.stride() == b.mT.stride()
    assert torch.equal(a[:n], b.mT[:n])
    assert all(map(torch.equal, inputs.arguments, inputs.pristine))
    weight = make_inputs(operators.load("linear_cross_entropy"), case, CPU).arguments[1]
    x = make_inputs(operators.load("linear_cross_entropy"), case, CPU).arguments[0]
    assert torch.equal(x[:n], weight[:n])


def test_an_input_is_a_view_of_what_its_user_has_alone() -> None:
    op, at = operators.load("swiglu"), {"shape": (16, 32), "dtype": "float32", "seed": 3}
    alone, _ = make_inputs(op, Case(**at), CPU).arguments
    assert alone._base is None
    gate, up = make_inputs(op, Case(special="parts of one tensor", **at), CPU).arguments
    assert gate._base is up._base
    assert gate._base.shape == (16, 64)
    turned = make_inputs(op, Case(layouts=(("gate", "transposed"),), **at), CPU).arguments[0]
    assert turned._base.is_contiguous()
    assert torch.equal(turned._base.mT, turned)


def test_the_transpose_of_a_tensor_is_in_its_memory() -> None:
    special = "one tensor and its transpose"
    for op, shape in (("vector_mul", (16, 16)), ("matmul", (16, 16, 32))):
        case = Case(shape=shape, dtype="float32", special=special, seed=3)
        inputs = make_inputs(operators.load(op), case, CPU)
        x, y = inputs.arguments
        assert y.data_ptr() == x.data_ptr()
        assert y.stride() == x.mT.stride()
        assert torch.equal(x, inputs.pristine[0])
        assert torch.equal(y, inputs.pristine[1])
        assert inputs.find_changed_input() is None


def test_scores_are_far_below_zero_or_one_key_above_all_others() -> None:
    op, shape = operators.load("attention"), (1, 1, 257, 16)
    for special in ("products far below zero", "one row as heavy as the others"):
        case = Case(shape=shape, dtype="float32", special=special, seed=3)
        q, k, v = make_inputs(op, case, CPU).pristine
        scores = (q @ k.mT)[0, 0] / 4
        if special == "products far below zero":
            assert scores.max() < -200
        else:
            weight = scores.softmax(-1)
            lone = int(weight[0].argmax())
            assert (weight.argmax(-1) == lone).all()
            assert lone < 65 or lone > 191
            assert ((weight[:, lone] > 0.995) & (weight[:, lone] < 0.9997)).all()
            assert v.std() > 0.8


def test_products_of_the_later_half_are_far_below() -> None:
    case = Case(
        shape=(33, 65, 16), dtype="float32", seed=3, special="half of the products far below zero"
    )
    x, weight, _ = make_inputs(operators.load("linear_cross_entropy"), case, CPU).pristine
    logits = x @ weight.mT
    assert logits[:, :32].min() > 500
    assert logits[:, 32:].max() < -500


@pytest.mark.parametrize(
    ("op", "expected"), [("layer_norm", ["", "tiny", "tiny"]), ("vector_add", []), ("mha", [])]
)
def test_a_number_is_zero_beside_usual_and_tiny_values(op: str, expected: list[str]) -> None:
    """vector_add declares a factor of 0, and is_causal is no number."""
    path = next(p for p in KERNELS.rglob("*.py") if f"\nop: {op}\n" in p.read_text())
    plan = plan_cases(operators.load(op), job_for(path), INTERPRETER)
    own = [case for case in plan.cases if ("eps", 0.0) in case.scalars]
    assert [case.regime.removeprefix("normal") for case in own] == expected


@pytest.mark.parametrize(
    ("op", "name", "expected"),
    [
        ("rms_norm", "eps", [1e-5, 0.99988e-5, 0.0, 4e-7]),
        ("vector_add", "alpha", [1.0, 0.99988]),
        ("dropout", "p", [0.5, 0.49994]),
    ],
)
def test_values_of_a_number_differ_little(op: str, name: str, expected: list[float]) -> None:
    own = operators.load(op)
    cases = parameter_cases(
        own, own.dtypes, lambda _, seed, **more: Case(shape=(7, 51), seed=seed, **more)
    )
    near = cases[-len(expected) :]
    assert [dict(case.scalars)[name] for case in near] == pytest.approx(expected, rel=1e-5)
    assert len({(case.shape, case.dtype, case.regime) for case in near}) == 1


def test_one_element_outweighs_the_others_by_up_to_eight() -> None:
    special = "one element as heavy as the others"
    case = Case(shape=(50, 1000), dtype="float32", special=special, seed=3)
    (x,) = make_inputs(operators.load("softmax"), case, CPU).pristine
    others = 1 - x.softmax(-1).amax(-1)
    assert others.max() > 0.2
    assert others.min() < 2e-3
    assert others.min() > 1e-4


@pytest.mark.parametrize("is_interpreted", [True, False])
def test_rows_of_every_kind_are_more_than_programs(*, is_interpreted: bool) -> None:
    path = KERNELS / "softmax_right.py"
    device = INTERPRETER if is_interpreted else DeviceFacts()
    plan = plan_cases(operators.load("softmax"), job_for(path), device)
    own = [case for case in plan.cases if "rows of every kind" in case.special]
    rows = MANY_ROWS_INTERPRETED if is_interpreted else MANY_ROWS
    assert {case.shape for case in own} == {(rows, 13)}
    assert len(own) == (2 if is_interpreted else 6)


def test_each_kind_of_row_comes_after_each_other_one() -> None:
    op = operators.load("softmax")
    special = "rows of every kind, nonfinite too"
    case = Case(shape=(MANY_ROWS_INTERPRETED, 13), dtype="float32", special=special, seed=3)
    (x,) = make_inputs(op, case, CPU).arguments
    kinds = torch.stack(
        [
            (x < -100).all(-1) & x.isfinite().all(-1), (x > 100).all(-1), (x == 0).all(-1),
            (x == -torch.inf).all(-1), x.isnan().any(-1), (x == torch.inf).any(-1),
            x.isfinite().all(-1) & (x.abs() < 10).all(-1),
        ]
    )  # fmt: skip
    pairs = (kinds[:, None, :-1] & kinds[None, :, 1:]).any(-1)
    assert kinds.any(-1).all()
    assert pairs.float().mean() > 0.8


@pytest.mark.parametrize("part", ["zeros", "equal", "nonfinite"])
def test_an_op_that_skips_a_part_skips_the_whole(part: str) -> None:
    source = (
        "import torch\n\nREGIMES_SKIP = ('PART',)\nDEFINED_FOR_NONFINITE = True\n\n\n"
        "def reference(x, y):\n    return x + y.sum(-1, keepdim=True)\n\n\n"
        "def make_inputs(shape, dtype, device, generator):\n"
        "    return tuple(torch.randn(shape, dtype=dtype, device=device, generator=generator)"
        " for _ in range(2))\n"
    )
    own = OpRef.own("added", source.replace("PART", part))
    plan, _ = plan_job.run(
        PlanJob(op=own, plan="full", seed=1, device_kind="interpreter"), Recorder()
    )
    assert isinstance(plan, Plan)
    specials = {case.special for case in plan.cases}
    assert ("rows of every kind" in specials) == (part == "nonfinite")
    assert "rows of every kind, nonfinite too" not in specials
    assert any("beside zeros" in name for name in specials) == (part == "equal")


def test_long_rows_are_several() -> None:
    plan = plan_cases(operators.load("softmax"), job_for(KERNELS / "softmax_right.py"), INTERPRETER)
    long = [case for case in plan.cases if case.shape == (17, 4097)]
    assert len({case.special for case in long}) >= 10
    assert representatives(operators.load("matmul"))["long rows"] == (3, 31, 1025)
