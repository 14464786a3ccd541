"""Tests of the regimes and special values of an op's inputs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, run_cases
from tests.harness.test_plan import plan_of
from triton_magics import operators
from triton_magics.harness.correctness.case_inputs import make_inputs, make_pristine
from triton_magics.harness.correctness.case_values import REGIMES, apply_values
from triton_magics.harness.correctness.special_values import (
    PARTS_OF_SLICE,
    PROJECTION,
    PROJECTION_OF_HEADS,
    PROJECTION_OF_SLICE,
    SHARED_VALUES,
    SPECIALS,
    TRANSPOSE,
    TRANSPOSE_BUT_FIRST,
)
from triton_magics.harness.correctness.usable_specials import usable_specials
from triton_magics.harness.correctness.value_structures import HALF_MAX
from triton_magics.model import Case, CaseStatus
from triton_magics.rendering.views.causes import cause_text


def inputs_with(op: str = "softmax", **changes: object) -> tuple[torch.Tensor, ...]:
    fields = {"shape": (50, 64), "dtype": "float32", "seed": 3, **changes}
    return make_pristine(operators.load(op), Case(**fields), CPU)


def rows_with(special: str, **changes: object) -> torch.Tensor:
    return inputs_with(special=special, **changes)[0]


@pytest.mark.parametrize(
    ("regime", "low", "high"),
    [
        ("shifted", -10, -1),
        ("mean_heavy", 990, 1010),
        ("negative", -1010, -990),
        ("x0.1", -0.6, 1.6),
    ],
)
def test_a_regime_moves_the_values_to_where_it_says(regime: str, low: float, high: float) -> None:
    x = inputs_with(regime=regime)[0]
    assert low <= float(x.min()) <= float(x.max()) <= high


def test_op_files_may_skip_each_kind_of_values() -> None:
    assert ("normal", *operators.REGIMES) == REGIMES
    assert set(operators.SPECIALS) == set(SPECIALS)


def test_minus_infinity_fills_aligned_blocks_and_rows() -> None:
    masked = rows_with("block of -inf") == -math.inf
    kinds = {tuple(torch.nonzero(row).flatten().tolist()) for row in masked}
    assert kinds == {(), tuple(range(32)), tuple(range(32, 64)), tuple(range(64))}


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_each_of_few_rows_has_a_block_of_minus_infinity(n_rows: int) -> None:
    kinds = set()
    for seed in range(20):
        x = rows_with("block of -inf", shape=(n_rows, 64), seed=seed) == -math.inf
        kinds |= {tuple(torch.nonzero(row).flatten().tolist()) for row in x}
        assert x.any(dim=-1).all()
    assert kinds == {tuple(range(32)), tuple(range(32, 64)), tuple(range(64))}


@pytest.mark.parametrize(("dtype", "least", "most"), [("float32", -40, 40), ("float16", -10, 4)])
def test_rows_of_many_scales_differ_by_powers_of_two(dtype: str, least: int, most: int) -> None:
    plain = rows_with("plain", dtype=dtype).double()
    x = rows_with("rows of many scales", dtype=dtype).double()
    powers = (x[:, :8] / plain[:, :8]).log2().round()
    assert torch.equal(powers, powers[:, :1].expand_as(powers))
    assert len(powers[:, 0].unique()) > 8
    assert least <= float(powers.min()) <= least + 6
    assert most - 6 <= float(powers.max()) <= most


def test_each_factor_of_a_product_has_rows_of_many_scales() -> None:
    for x in inputs_with("matmul", shape=(16, 16, 32), special="rows of many scales"):
        assert float(x.abs().amax(-1).log2().min()) < -20


def test_elements_of_many_scales_differ_by_powers_of_two() -> None:
    plain, x = (inputs_with("gelu", special=s)[0] for s in ("plain", "elements of many scales"))
    assert len((x / plain).log2()[0].unique()) > 8


def test_few_distinct_numbers_repeat_the_largest_and_zeros() -> None:
    x = rows_with("few distinct numbers", shape=(50, 300))
    assert len(x.unique()) == 5
    zeros = x[x == 0].signbit()
    assert zeros.any()
    assert not zeros.all()
    assert ((x == x.amax(-1, keepdim=True)).sum(-1) > 1).float().mean() > 0.9


def test_rows_unlike_their_neighbours_are_low_zero_or_equal() -> None:
    x = rows_with("rows unlike their neighbours")
    assert (x[1::4] < -100).all()
    assert (x[3::8] == 0).all()
    assert torch.equal(x[7::8], x[7::8, :1].expand_as(x[7::8]))
    assert (x[::2].std(-1) > 0.5).all()


@pytest.mark.parametrize(
    ("op", "shape", "expected"),
    [
        ("vector_add", (16, 32), (0, 0, 2)),
        ("attention", (2, 4, 16, 32), (0, 0, 0)),
        ("matmul", (16, 16, 16), (0, 0)),
        ("matmul", (16, 16, 32), (0, 1)),
        ("fp8_matmul", (16, 16, 32), (0, 0, 2, 2)),
    ],
)
def test_inputs_of_one_shape_are_one_tensor(
    op: str, shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    own = operators.load(op)
    case = Case(shape=shape, dtype="float16", special="one tensor for several inputs", seed=3)
    arguments = make_inputs(own, case, CPU).arguments
    assert tuple(next(j for j, y in enumerate(arguments) if y is x) for x in arguments) == expected


@pytest.mark.parametrize(
    ("op", "in_one_tile"),
    [
        ("matmul", set()),
        ("vector_mul", {PROJECTION, PARTS_OF_SLICE, PROJECTION_OF_SLICE, PROJECTION_OF_HEADS}),
        ("attention", {TRANSPOSE, TRANSPOSE_BUT_FIRST}),
    ],
)
def test_inputs_of_one_memory_have_several_tiles(op: str, in_one_tile: set[str]) -> None:
    rows: dict[str, int] = {}
    for case in plan_of(op).cases:
        if case.special in SHARED_VALUES:
            rows[case.special] = max(rows.get(case.special, 0), *case.shape[-3:-1])
    assert len(rows) > len(in_one_tile) + 7
    assert {special for special, n in rows.items() if n <= 128} == in_one_tile


@pytest.mark.parametrize(("dtype", "lead"), [("float32", 20.0), ("float16", 12.0)])
def test_a_sink_weighs_most_and_has_the_value_0(dtype: str, lead: float) -> None:
    values = {"shape": (2, 3, 65, 32), "dtype": dtype, "special": "attention sink, its value 0"}
    q, k, v = (x.double() for x in inputs_with("attention", **values))
    scores = q @ k.mT / 32**0.5
    assert torch.allclose(scores[..., 0], torch.full_like(scores[..., 0], lead), rtol=1e-3)
    assert lead - 6 < float((scores[..., :1] - scores[..., 1:]).mean()) < lead + 6
    assert not v[..., 0, :].any()
    assert v[..., 1:, :].any(-1).all()


def test_weighted_sums_are_past_float16_before_they_are_divided() -> None:
    special = "weighted sums past 65504"
    q, k, v = inputs_with("attention", shape=(2, 3, 65, 32), dtype="float16", special=special)
    scores = (q.double() @ k.double().mT) / 32**0.5
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    parts = (weights[..., :16] @ v.double()[..., :16, :]).abs()
    assert float(parts.min()) > HALF_MAX
    assert float((torch.softmax(scores, -1) @ v.double()).max()) < HALF_MAX / 4


@pytest.mark.parametrize(
    ("op", "shape", "stride"),
    [
        ("swiglu", (7, 13), (0, 1)),
        ("attention", (2, 4, 16, 32), (2048, 0, 32, 1)),
        ("gqa", (2, 8, 2, 16, 32), (1024, 0, 32, 1)),
    ],
)
def test_one_input_repeats_the_first_row_or_head_of_another(
    op: str, shape: tuple[int, ...], stride: tuple[int, ...]
) -> None:
    special = "one tensor and its first row or head, repeated"
    inputs = make_inputs(
        operators.load(op), Case(shape=shape, dtype="float32", special=special, seed=1), CPU
    )
    tensors = [x for x in inputs.arguments if isinstance(x, torch.Tensor)]
    assert tensors[-1].stride() == stride
    assert tensors[-1].data_ptr() == tensors[-2].data_ptr()
    assert all(map(torch.equal, tensors, inputs.pristine))


def test_a_version_that_is_wrong_for_one_tensor_is_refused(tmp_path: Path) -> None:
    text = (KERNELS / "vector_add_right.py").read_text()
    old = "    x, y = x.contiguous(), y.contiguous()\n"
    assert old in text
    new = old + "    y = y if x.data_ptr() != y.data_ptr() else torch.empty_like(y).copy_(y[:1])\n"
    (path := tmp_path / "kernel.py").write_text(text.replace(old, new))
    cases = [c for c in plan_of("vector_add").cases if c.special == "one tensor for several inputs"]
    assert len(cases) == 3  # with two values of alpha, and in several tiles
    for result in run_cases(path, *cases):
        assert result.status is CaseStatus.WRONG_VALUES
        assert "right where each input is a tensor of its own" in cause_text(result.mismatch.cause)
    right = run_cases(KERNELS / "vector_add_right.py", *cases)
    assert {result.status for result in right} == {CaseStatus.PASSED}


def test_memory_is_no_cause_where_the_values_are_wrong_alone(tmp_path: Path) -> None:
    text = (KERNELS / "right" / "mul_flat.py").read_text()
    old = "out = torch.empty_like(x)"
    assert old in text
    wrong = "if bool((x == y).all()):\n        y = y * 1.5\n    " + old  # whatever the memory
    (path := tmp_path / "kernel.py").write_text(text.replace(old, wrong))
    named = "one tensor for several inputs"
    (result,) = run_cases(path, Case(shape=(16, 32), dtype="float16", special=named, seed=3))
    assert result.status is CaseStatus.WRONG_VALUES
    shown = cause_text(result.mismatch.cause) if result.mismatch.cause else ""
    assert "tensor of its own" not in shown


def test_values_near_a_number_are_on_both_sides_of_it() -> None:
    x = rows_with("values near 88.5")
    size = x[::2].abs()
    assert (size >= 44).all()
    assert (size <= 177).all()
    for sign in (1, -1):
        own = x[::2] * sign
        assert ((own > 88.5) & (own < 95)).any()
        assert ((own < 88.5) & (own > 80)).any()
        assert (own == 88.5).any()
    assert ((x[1::2].abs() > 40).sum(-1) == 1).all()


def test_the_double_of_each_number_near_the_largest_is_infinite() -> None:
    special = "near the largest number"
    x, y, _ = inputs_with("vector_add", special=special, dtype="float16")
    for one in (x, y):
        assert one.isfinite().all()
        assert (one + one).isinf().all()
        assert (one > 0).any()
        assert (one < 0).any()
    assert (x + y).isfinite().any()
    assert {c.dtype for c in plan_of("gelu").cases if c.special == special} == {"float16"}
    assert special not in {c.special for c in plan_of("swiglu").cases}


@pytest.mark.parametrize("shape", [(7, 13), (1, 4), (17, 4097)])
def test_a_distance_to_the_mean_passes_the_largest_half(shape: tuple[int, ...]) -> None:
    case = {"special": "far from the mean", "dtype": "float16", "shape": shape}
    x = inputs_with("layer_norm", **case)[0]
    assert x.isfinite().all()
    far = (x.double() - x.double().mean(-1, keepdim=True)).abs() > 65_504
    assert far.any(-1).all()
    assert {c.dtype for c in plan_of("layer_norm").cases if c.special == case["special"]} == {
        "float16"
    }


def test_gelu_meets_nan_and_infinity_but_not_minus_infinity() -> None:
    own = [case for case in plan_of("gelu").cases if case.special == "nonfinite"]
    assert own
    values = torch.cat([make_pristine(operators.load("gelu"), c, CPU)[0].flatten() for c in own])
    assert values.isnan().any()
    assert (values == torch.inf).any()
    assert not (values == -torch.inf).any()


@pytest.mark.parametrize("reference", [lambda x: (x + x) * 0.5, lambda x: (x, (x + x) * 0.5)])
def test_values_at_which_torch_overflows_are_left_out(reference: Callable[..., object]) -> None:
    double = dataclasses.replace(operators.load("relu"), reference=reference)
    specials = [set(usable_specials(op, op.dtypes)) for op in (operators.load("relu"), double)]
    assert specials[0] - specials[1] == {"near the largest number"}


KINDS = {(1, "nan"), (-1, "nan"), (1, "inf"), (-1, "inf")}


def kinds_of(values: torch.Tensor) -> list[tuple[int, str]]:
    """Return the sign and the kind of each nonfinite value; a NaN has a sign too."""
    return [(-1 if v.signbit() else 1, "nan" if v.isnan() else "inf") for v in values]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_each_nonfinite_value_is_alone_in_a_row_at_each_place(dtype: str) -> None:
    x = rows_with("nonfinite", dtype=dtype)
    alone = x[(~x.isfinite()).sum(-1) == 1]
    lanes = (~alone.isfinite()).nonzero()[:, 1]
    for lane in (0, 32, 63):
        assert set(kinds_of(alone[lanes == lane, lane])) == KINDS
    assert len(lanes.unique()) > 3
    assert x.isfinite().all(dim=-1).any()
    assert x.isfinite().float().mean() > 0.7


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_each_of_few_rows_has_another_nonfinite_value(n_rows: int) -> None:
    kinds = []
    for seed in range(40):
        if seed % 5 < n_rows:  # this row mixes all
            continue
        x = rows_with("nonfinite", shape=(n_rows, 1000), seed=seed)
        own = kinds_of(x[~x.isfinite()])
        assert len(own) == len(set(own)) == n_rows
        kinds += own
    assert set(kinds) == KINDS


def test_zeros_meet_nan_and_infinities_of_another_tensor() -> None:
    x, y = inputs_with("vector_mul", special="nonfinite")
    for one, other in ((x, y), (y, x)):
        assert (other[one == 0].isnan()).any()
        assert (other[one == 0].isinf()).any()


@pytest.mark.parametrize("changes", [{"regime": "x10"}, {"special": "huge element"}])
def test_ends_of_rows_have_their_largest_element(changes: dict[str, str]) -> None:
    places = inputs_with(**changes)[0].argmax(-1)
    assert (places == 0).any()
    assert (places == 63).any()
    assert ((places > 0) & (places < 63)).any()
    assert inputs_with(regime="negative")[0].max() < 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_some_rows_are_below_a_mask_of_minus_ten_thousand(dtype: str) -> None:
    x = rows_with("rows at -20000", dtype=dtype)
    assert (x[0::2] < -1e4).all()
    assert (x[1::2] > -1e4).all()


def test_one_element_is_huge() -> None:
    assert int((rows_with("huge element") > 1e4).sum()) == 1


def test_a_lone_element_of_the_first_row_is_near_its_start() -> None:
    first, *others = rows_with("one element as heavy as the others", shape=(4, 4096))
    assert int(first.argmax()) < 4096 // 8
    assert float(first.max()) == pytest.approx(math.log(4096))
    assert any(int(row.argmax()) >= 4096 // 8 for row in others)


@pytest.mark.parametrize("columns", [13, 64, 1000, 4097])
def test_sums_pass_the_largest_half_though_results_do_not(columns: int) -> None:
    x = rows_with("sums past 65504", shape=(4, columns), dtype="float16").double()
    assert x.abs().max() < HALF_MAX / 2
    assert (x.cumsum(-1).amax(-1) > HALF_MAX).all()
    assert (x.sum(-1).abs() < HALF_MAX).all()


def test_products_pass_the_largest_half_but_outputs_do_not() -> None:
    a, b = inputs_with("matmul", shape=(17, 19, 64), special="products past 65504", dtype="float16")
    assert (a.double().square().sum(-1) > HALF_MAX).all()
    assert (a.double() @ b.double()).abs().max() < HALF_MAX


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_exponentials_pass_the_largest_half_in_all_inputs(dtype: str) -> None:
    for x in inputs_with("swiglu", special="exp past 65504", dtype=dtype):
        assert ((-x.double()).exp() > HALF_MAX).all()
        assert x.double().amax() / x.double().amin() > 0.9


@pytest.mark.parametrize("columns", [2, 13, 64])
def test_rows_cancel_exactly(columns: int) -> None:
    x = rows_with("exact cancellation", shape=(4, columns)).double()
    assert torch.equal((x + x.flip(-1)), torch.zeros_like(x))
    assert x.abs().max() > 0


def test_some_rows_are_far_from_their_neighbours() -> None:
    means = rows_with("rows unlike their neighbours").mean(-1)
    assert (means[1::4] < -150).all()
    assert (means[0::4].abs() < 1).all()


def test_special_values_keep_the_regime() -> None:
    x = rows_with("block of -inf", regime="mean_heavy")
    assert float(x[x.isfinite()].min()) > 990


def test_weights_are_left_as_they_are() -> None:
    plain = inputs_with("layer_norm")
    changed = inputs_with("layer_norm", special="block of -inf")
    assert (changed[0] == -math.inf).any()
    assert torch.equal(changed[1], plain[1])


def test_a_special_value_goes_to_one_of_two_tensors_by_the_seed() -> None:
    huge = [
        tuple(
            bool((x > 1e4).any()) for x in inputs_with("vector_mul", special="huge element", seed=s)
        )
        for s in (2, 3)
    ]
    assert sorted(huge) == [(False, True), (True, False)]


def test_a_scalar_takes_the_place_of_what_make_inputs_chose() -> None:
    assert inputs_with("vector_add", scalars=(("alpha", -2.0),))[2] == -2.0
    assert inputs_with("layer_norm", scalars=(("eps", 1e-3),))[3] == 1e-3


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_values_grow_to_the_end_of_rows_and_over_the_rows(dtype: str) -> None:
    q, k, v = inputs_with(
        "attention", shape=(1, 1, 192, 64), dtype=dtype, regime="x10", special="largest at the end"
    )
    for x in (q, k, v):
        size = x.double().abs()
        assert float(size[..., -1, :].mean() / size[..., 0, :].mean()) > 10
        assert float(size[..., -1].mean() / size[..., 0].mean()) > 10
        assert torch.isfinite(x).all()
    scores = q.double() @ k.double().mT * 64**-0.5
    last, first = scores[..., 128:].amax(-1), scores[..., :128].amax(-1)
    assert float((last - first > 11).double().mean()) > 0.5  # 2**16 times larger, of the queries


def test_the_largest_number_of_a_dtype_does_not_grow_to_infinity() -> None:
    x = rows_with("largest at the end", dtype="float16", regime="large")
    assert torch.isfinite(x).all()


@pytest.mark.parametrize(
    ("drawn", "least"), [((-127, 128), -128), ((-1, 2), -1), ((0, 2), 0), ((-128, 128), -128)]
)
def test_bytes_get_their_extremes_where_they_span_the_type(
    drawn: tuple[int, int], least: int
) -> None:
    draw = torch.Generator().manual_seed(3)
    weights = torch.randint(*drawn, (9, 40), dtype=torch.int8, generator=draw)
    case = Case(shape=(9, 40), dtype="float32", special="least and largest bytes", seed=1)
    x, changed = apply_values((torch.ones(9, 40), weights), case, draw)
    assert int(changed.min()) == least
    assert torch.equal(x, torch.ones(9, 40))


@pytest.mark.parametrize(
    ("op", "place", "dims"), [("mha", 2, (0, 2, 3)), ("matmul", 0, (1,)), ("rms_norm", 0, (1,))]
)
def test_some_parts_of_one_input_are_nan(op: str, place: int, dims: tuple[int, ...]) -> None:
    """They are whole parts along the dimension of the op's INDEPENDENT: heads, or rows."""
    shape = {"mha": (2, 33, 7, 8), "matmul": (33, 5, 13), "rms_norm": (33, 13)}[op]
    case = Case(shape=shape, dtype="float32", special="NaN in some parts", seed=5)
    inputs = make_pristine(operators.load(op), case, CPU)
    is_nan = inputs[place].isnan()
    parts = is_nan.all(dims) if len(dims) > 1 else is_nan.all(dims[0])
    assert torch.equal(parts, is_nan.any(dims) if len(dims) > 1 else is_nan.any(dims[0]))
    assert 8 <= int(parts.sum()) <= 25
    others = [x for i, x in enumerate(inputs) if i != place and isinstance(x, torch.Tensor)]
    assert all(x.isfinite().all() for x in others)
    assert "NaN in some parts" not in {*usable_specials(operators.load("softmax"), ["float32"])}


@pytest.mark.parametrize("columns", [16, 64, 128])
def test_scores_are_below_what_a_kernel_fills_a_mask_with(columns: int) -> None:
    at: dict[str, object] = {"shape": (1, 1, 33, columns), "scalars": (("is_causal", True),)}
    q, k, *_ = inputs_with("mha", special="products below -10000", **at)
    assert (q @ k.mT / columns**0.5).max() < -1e4
    q, k, *_ = inputs_with("mha", special="first products below -10000", **at)
    scores = q @ k.mT / columns**0.5
    assert scores[..., :16].max() < -1e4
    assert scores[..., 16:].min() > 1e4
