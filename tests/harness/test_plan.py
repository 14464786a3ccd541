"""The cases of a validation: which there are, and which combinations of values they cover."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.harness.kit import CPU, KERNELS, Recorder, job_for, run_cases, run_validation
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness import plan_job as planning
from triton_magics.harness.correctness import shape_classes
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.shape_variants import walk_of_dimensions
from triton_magics.harness.correctness.special_values import (
    LEVELS,
    LEVELS_NONFINITE,
    SHARED_VALUES,
    SPECIALS,
)
from triton_magics.harness.correctness.value_cases import FAR_LEVEL
from triton_magics.model import BESIDE, Case, CaseStatus, Plan, Status

RIGHT = KERNELS / "softmax_right.py"
GPU = DeviceFacts()


def plan_of(op: str, plan: str = "full", seed: int = 7, device: DeviceFacts = GPU) -> Plan:
    job = PlanJob(op=OpRef(name=op), plan=plan, seed=seed, device_kind="gpu")
    return plan_cases(operators.load(op), job, device)


def test_the_plan_depends_on_the_seed_alone() -> None:
    first, again, other = (plan_of("softmax", seed=seed).cases for seed in (7, 7, 8))
    assert first == again
    assert {c.evolve(seed=0) for c in first} != {c.evolve(seed=0) for c in other}


# ------------------------------------------------------------------------------- combinations


def values(case: Case, tensors: Iterable[str]) -> list[tuple[str, object]]:
    """Return the values of a case, found here without the code of the plan."""
    layouts = dict(case.layouts)
    return [
        ("dtype", case.dtype),
        ("shape", case.shape_class),
        ("regime", case.regime),
        ("special", case.special),
        *((f"layout of {name}", layouts.get(name, "contiguous")) for name in tensors),
        *case.scalars,
    ]


def combinations(plan: Plan, strength: int) -> tuple[set[tuple[object, ...]], int]:
    """Return the combinations that the cases have, and how many there would be of all values."""
    cases = [c for c in plan.cases if c.shape_class not in ("", BESIDE)]
    tensors = sorted({name for c in cases for name, _ in c.layouts})
    rows = [values(c, tensors) for c in cases]
    factors: dict[str, set[object]] = {}
    for name, value in itertools.chain.from_iterable(rows):
        factors.setdefault(name, set()).add(value)
    sizes = [len(v) for v in factors.values()]
    total = sum(math.prod(chosen) for chosen in itertools.combinations(sizes, strength))
    return {sub for row in rows for sub in itertools.combinations(row, strength)}, total


@pytest.mark.parametrize("op", operators.names())
def test_every_possible_pair_of_values_is_in_a_full_plan(op: str) -> None:
    plan = plan_of(op)
    covered, total = combinations(plan, 2)
    assert plan.scope is not None
    assert len(covered) == plan.scope.n_covered == plan.scope.n_possible
    assert total - len(covered) == sum(entry.n for entry in plan.scope.impossible)
    assert len(plan.cases) <= 284


@pytest.mark.parametrize("op", ["softmax", "vector_add"])
def test_every_possible_triple_of_values_is_in_a_thorough_plan(op: str) -> None:
    plan = plan_of(op, "thorough")
    covered, _ = combinations(plan, 3)
    assert plan.scope is not None
    assert len(covered) == plan.scope.n_covered == plan.scope.n_possible
    pairs, _ = combinations(plan_of(op), 2)
    assert pairs <= combinations(plan, 2)[0]


def test_each_tensor_has_a_layout_of_its_own() -> None:
    cases = [case for case in plan_of("vector_add").cases if case.shape_class != BESIDE]
    pairs = {(case.layout_of("x"), case.layout_of("y")) for case in cases}
    assert len({x for x, y in pairs if x != y}) == 7
    assert ("contiguous", "transposed") in pairs


@pytest.mark.parametrize("op", ["softmax", "rope", "quantized_matmul"])
def test_plain_values_have_each_layout_of_each_tensor(op: str) -> None:
    cases = [c for c in plan_of(op).cases if c.shape_class not in ("", BESIDE)]
    everywhere = {item for c in cases for item in c.layouts}
    assert everywhere == {item for c in cases if c.has_plain_values for item in c.layouts}


@pytest.mark.parametrize("op", ["swiglu", "vector_add", "mha", "matmul"])
def test_all_tensors_have_one_layout_in_plain_cases(op: str) -> None:
    cases = [c for c in plan_of(op).cases if c.has_plain_values and c.layouts]
    inputs = {name for c in cases for name, _ in c.layouts}
    for layout in ("transposed", "strided", "padded rows", "unaligned"):
        equal = {c.shape for c in cases if dict(c.layouts) == dict.fromkeys(inputs, layout)}
        assert any(min(shape[-2:]) > 1 for shape in equal), layout


def test_impossible_pairs_say_why() -> None:
    scope = plan_of("softmax").scope
    assert scope is not None
    reasons = {entry.reason: entry.item for entry in scope.impossible}
    assert reasons["in this shape the layout is the contiguous one"] == "tiny with transposed"
    assert all(entry.reason for entry in (*scope.impossible, *scope.extents))


def test_declared_scalars_are_combined_with_everything() -> None:
    cases = [c for c in plan_of("vector_add").cases if c.shape_class not in ("", BESIDE)]
    alphas = Counter(dict(c.scalars)["alpha"] for c in cases)
    assert set(alphas) == {1.0, -2.0, 0.1, 0.0}
    assert len({c.special for c in cases if c.scalars == (("alpha", -2.0),)}) >= 10


def test_values_that_an_op_is_not_defined_for_are_left_out() -> None:
    specials = {c.special for c in plan_of("matmul").cases}
    assert "products past 65504" in specials
    assert not {"nonfinite", "block of -inf", "sums past 65504"} & specials
    assert {c.special for c in plan_of("softmax").cases} - {"plain"} == {
        f"{LEVELS}{FAR_LEVEL}",
        f"{LEVELS_NONFINITE}{FAR_LEVEL}",
    } | {
        name
        for name, special in SPECIALS.items()
        if "reduction" in special.op_classes
        and not (special.of_bytes or special.of_parts or name in SHARED_VALUES)
    }


@pytest.mark.parametrize("op", ["softmax", "layer_norm", "sum", "gelu"])
def test_no_row_of_a_full_plan_compiles_for_seconds(op: str) -> None:
    """A kernel with a row in one block takes 6 s at 40,009 columns, and is refused over 2^16."""
    columns = {c.shape[-1] for c in plan_of(op).cases if c.shape}
    assert not {n for n in columns if 2**14 < n <= shape_classes.MAX_FULL_COLUMNS}


@pytest.mark.parametrize(
    ("name", "rows", "values"), [("gqa", 257, (True, False)), ("layer_norm", 127, (1e-5, 1e-6))]
)
def test_a_walk_has_another_scalar_between_two_calls(
    name: str, rows: int, values: tuple[float, float]
) -> None:
    cases = plan_of(name).cases
    turned = [c for c in cases[:9] if c.shape[-2] == rows]
    assert [value for c in turned for _, value in c.scalars] == [values[0], values[1], values[0]]
    assert len({c.seed for c in turned}) == 3
    first = cases.index(turned[0])
    assert [*cases[first : first + 3]] == turned


def test_a_plan_begins_with_a_walk_over_the_dimensions() -> None:
    base = (7, 5, 13)
    steps = [(7, 5, 1025), (7, 131, 13), (257, 5, 13)]
    walk = [base, *(shape for step in steps for shape in (step, base))]
    lengths = (512, 513, 767, 4096, 2561, 2049)
    walk += [*((7, 5, n) for n in lengths), *((7, n, 13) for n in lengths)]
    walk += [(n, 5, 13) for n in (512, 513, 1023)]
    assert walk_of_dimensions(operators.load("matmul")) == walk
    for device in (GPU, DeviceFacts(is_interpreted=True)):
        cases = plan_of("matmul", device=device).cases
        assert [c.shape for c in cases[: len(walk)]] == walk
        assert {(c.dtype, *c.changes) for c in cases[: len(walk)]} == {("float32",)}
    of_rows = walk_of_dimensions(operators.load("softmax"))
    similar = [(7, 512), (7, 513), (7, 767), (7, 4096), (7, 2561), (7, 2049)]
    assert of_rows[-9:] == [*similar, (32, 1023), (33, 1023), (47, 1023)]
    of_heads = walk_of_dimensions(operators.load("gqa"))
    assert of_heads[-8:-6] == [(1, 2, 1, 7, 64), (1, 2, 1, 7, 80)]  # multiples of 16
    assert (1, 4, 4, 7, 64) in of_heads  # two heads of queries can't share four of keys


def test_a_shorter_row_shows_what_a_rounded_number_of_parts_left() -> None:
    """Eight parts, then six, of a buffer for eight."""
    path = KERNELS.parent / "unseen_kernels" / "eighteenth" / "sum_stored_partials.py"
    shapes = walk_of_dimensions(operators.load("sum"))
    assert shapes.index((7, 2561)) == shapes.index((7, 4096)) + 1
    cases = [Case(shape=shape, dtype="float32", seed=1) for shape in ((7, 4096), (7, 2561))]
    first, second = run_cases(path, *cases)
    assert (first.status, second.status) == (CaseStatus.PASSED, CaseStatus.WRONG_VALUES)
    assert {r.status for r in run_cases(KERNELS / "sum_right.py", *cases)} == {CaseStatus.PASSED}


@pytest.mark.in_turn
def test_a_yet_shorter_length_has_a_part_without_work() -> None:
    """Four parts of 321 and of 257 positions, in blocks of 32: the last of 257 is empty."""
    path = KERNELS.parent / "unseen_kernels" / "nineteenth" / "attention_split_workspace.py"
    shapes = walk_of_dimensions(operators.load("attention"))
    assert shapes[-2:] == [(1, 1, 321, 64), (1, 1, 257, 64)]
    cases = [Case(shape=shape, dtype="float32", seed=1) for shape in shapes[-2:]]
    first, second = run_cases(path, *cases)
    assert (first.status, second.status) == (CaseStatus.PASSED, CaseStatus.WRONG_VALUES)
    right = KERNELS / "right" / "attention_flash.py"
    assert {r.status for r in run_cases(right, *cases)} == {CaseStatus.PASSED}


@pytest.mark.parametrize("op", ["matmul", "quantized_matmul", "rope", "sum", "swiglu"])
def test_large_values_are_left_out_in_float16_alone(op: str) -> None:
    for plan in ("full", "thorough"):
        cases = [c for c in plan_of(op, plan).cases if c.regime == "large"]
        assert {c.dtype for c in cases} == {"float32", "bfloat16"}


def test_bytes_have_their_least_and_largest_numbers() -> None:
    op = operators.load("quantized_matmul")
    cases = [c for c in plan_of("quantized_matmul").cases if c.special == "least and largest bytes"]
    assert {c.dtype for c in cases} == set(op.dtypes)
    x, weight, _ = make_pristine(op, cases[0], CPU)
    assert {-128, 127} <= set(weight.unique().tolist())
    assert x.abs().max() < 100


def test_values_past_the_largest_half_are_of_half_types() -> None:
    cases = [c for c in plan_of("swiglu").cases if c.special == "exp past 65504"]
    assert {c.dtype for c in cases} == {"float16", "bfloat16"}
    job = PlanJob(op=OpRef(name="swiglu"), seed=7, dtypes=("float32",), device_kind="gpu")
    specials = {c.special for c in plan_cases(operators.load("swiglu"), job, GPU).cases}
    assert "exp past 65504" not in specials


# ------------------------------------------------------------------------- sizes and extents


def test_the_full_plan_has_every_size_and_shape() -> None:
    op, cases = operators.load("softmax"), plan_of("softmax").cases
    assert {(c.size, c.dtype) for c in cases if c.size} == set(
        itertools.product(("small", "medium", "large"), op.dtypes)
    )
    assert set(op.shapes) <= {c.shape for c in cases if not c.changes and c.dtype == "float32"}


def test_a_gpu_runs_every_extent_in_a_thorough_plan() -> None:
    full, thorough = plan_of("softmax"), plan_of("softmax", "thorough")
    own = {
        "8,209 columns",
        "12,299 columns",
        "280,009 columns",
        "8,209 columns, nine apart",
        "the largest size less one",
        "4,001 long rows",
    }
    of_full = {"4,099 rows", "the largest size", "over 65,535 rows", "over 2^18 columns"}
    assert {c.extent for c in full.cases} == {"", "no elements", *own, *of_full}
    assert full.scope is not None
    assert next((e.item, e.reason) for e in full.scope.extents) == (
        "over 65,536 columns",
        "only in the thorough plan",
    )
    names = {c.extent for c in thorough.cases}
    assert names - own == {
        "", "no elements", "4,099 rows", "the largest size", "over 65,535 rows",
        "over 65,536 columns", "151,936 columns", "over 2^18 columns",
        "over 1,000,000 columns", "over 2^24 rows", "over 2^31 elements",
        "over 2^31 elements apart",
    }  # fmt: skip
    wide = [c for c in thorough.cases if c.extent == "151,936 columns"]
    assert {c.dtype for c in wide} == {"float32", "float16", "bfloat16"}
    assert {c.layout_of("x") for c in wide} >= {"contiguous", "strided", "padded rows"}


@pytest.mark.parametrize("plan", ["full", "thorough"])
def test_the_interpreter_has_wide_rows_and_many_plain_ones(plan: str) -> None:
    planned = plan_of("softmax", plan, device=DeviceFacts(is_interpreted=True))
    own = {
        "8,209 columns",
        "12,299 columns",
        "70,001 columns",
        "8,209 columns, nine apart",
    }  # with structures of long rows
    assert {c.extent for c in planned.cases} - own == {
        "", "no elements", "201 rows", "over 65,535 rows", "over 65,536 columns",
        "151,936 columns", "over 2^18 columns",
    }  # fmt: skip
    (many,) = (c for c in planned.cases if c.extent == "over 65,535 rows")
    assert (many.shape, many.changes) == ((70_001, 3), ())
    assert planned.scope is not None
    reasons = {e.item: e.reason for e in planned.scope.extents}
    assert reasons["over 1,000,000 columns"] == "too large for the interpreter"


@pytest.mark.parametrize("name", ["rope", "matmul", "mha", "softmax"])
def test_the_interpreter_runs_plain_cases_by_cost(name: str) -> None:
    op = operators.load(name)
    cases = plan_of(name, device=DeviceFacts(is_interpreted=True)).cases
    cases = cases[len(walk_of_dimensions(op)) + 2 * bool(op.scalars) :]
    plain = [c for c in cases[::2] if c.has_plain_values and not c.size]
    of_first_dtype = [c for c in plain if c.is_contiguous and c.dtype == op.dtypes[0]]
    first = dict.fromkeys(
        (c.shape, c.extent) for c in of_first_dtype if c.extent or c.shape in op.shapes
    )
    extents = {c.extent for c in cases if c.extent and c.has_plain_values and c.is_contiguous}
    assert {extent for _, extent in first} - {""} == extents
    assert {shape for shape, extent in first if not extent} == set(op.shapes)
    costs = [shape_classes.interpreter_cost(op, shape) for shape, _ in first]
    assert costs == sorted(costs)
    layouts = {v for c in cases if c.shape_class != BESIDE for v in dict(c.layouts).values()}
    n = len(op.shapes) + len(layouts)
    assert {v for c in cases[: 2 * n : 2] for v in dict(c.layouts).values()} >= layouts
    specials = {c.special for c in cases}
    assert {c.special for c in cases[1 : 2 * len(specials) : 2]} == specials
    assert len({c.regime for c in cases[1 : 2 * n : 2]}) > 3
    on_gpu = plan_of(name).cases
    sizes = [i for i, c in enumerate(on_gpu) if c.size]
    assert sizes[-1] < min(i for i, c in enumerate(on_gpu) if c.extent)


def test_a_long_sequence_costs_more_than_wide_heads() -> None:
    op = operators.load("attention")
    costs = [shape_classes.interpreter_cost(op, s) for s in ((1, 2, 33, 160), (1, 1, 1023, 64))]
    assert costs == [6, 256]


@pytest.mark.parametrize("plan", ["full", "thorough"])
def test_the_interpreter_has_a_stand_in_of_many_rows(plan: str) -> None:
    cases = plan_of("rope", plan, device=DeviceFacts(is_interpreted=True)).cases
    (many,) = (c for c in cases if c.extent == "over 2,048 rows")
    assert many.shape == (1, 1, 2_053, 257)
    assert many.has_plain_values
    assert "over 2,048 rows" not in {c.extent for c in plan_of("rope", plan).cases}


@pytest.mark.parametrize("name", ["mha", "matmul", "quantized_matmul"])
def test_each_shape_of_a_product_meets_each_dtype_and_scalar(name: str) -> None:
    op = operators.load(name)
    rank = len(operators.smallest_shape(op))
    classes = {shape_classes.classify(shape, rank) for shape in op.shapes}
    cases = [c for c in plan_of(name).cases if c.shape_class in classes]
    cheap = [s for s in op.shapes if shape_classes.interpreter_cost(op, s) <= 32]
    have = {(c.shape, c.dtype, c.scalars) for c in cases}
    scalars = {c.scalars for c in cases}
    several = [s for s in cheap if sum(_class_of(op, o) == _class_of(op, s) for o in op.shapes) > 1]
    assert len(several) >= 4
    assert have >= set(itertools.product(several, op.dtypes, scalars))


def _class_of(op: operators.Op, shape: tuple[int, ...]) -> str:
    return shape_classes.classify(shape, len(operators.smallest_shape(op)))


def _valuation(n: int) -> int:
    """Return the exponent of the largest power of two that divides a number."""
    return (n & -n).bit_length() - 1


@pytest.mark.parametrize("name", operators.names())
def test_lengths_are_odd_multiples_of_each_block(name: str) -> None:
    op = operators.load(name)
    plain = [c for c in plan_of(name).cases if c.has_plain_values and c.is_contiguous]
    dimension = -2 if len(operators.smallest_shape(op)) > 3 and op.op_class == "matmul" else -1
    rank = len(operators.smallest_shape(op))
    shapes = {c.shape for c in plain if not c.size and len(c.shape) == rank}
    odd = {s for s in shapes if s[dimension] & (s[dimension] - 1)}
    assert {_valuation(s[dimension]) for s in odd} >= {4, 5, 6, 7}
    if op.op_class == "matmul":
        scalars = [[(k, v) for v in values] for k, values in op.scalars.items()]
        for shape in shape_classes.whole_blocks(op):
            have = {c.scalars for c in plain if c.shape == shape}
            assert have == set(itertools.product(*scalars))
    else:
        totals = {_valuation(math.prod(s)) for s in shape_classes.whole_blocks(op)}
        assert totals == {8, 9, 10}


def test_a_loss_over_a_product_has_many_classes_in_each_regime() -> None:
    device = DeviceFacts(is_interpreted=True)
    plans = [plan_of("linear_cross_entropy", seed=seed, device=device) for seed in range(4)]
    cases = [c for plan in plans for c in plan.cases if c.shape_class not in ("", BESIDE)]
    many = [c for c in cases if c.shape[1] == 1000]
    assert len(many) >= 4 * 7
    assert {c.regime for c in many} == {c.regime for c in cases}
    products = [c for c in plan_of("matmul").cases if c.shape_class not in ("", BESIDE)]
    assert max(c.shape[1] for c in products if c.changes) <= 131


@pytest.mark.parametrize("is_interpreted", [False, True])
@pytest.mark.parametrize("op", ["softmax", "attention", "mha", "matmul", "cross_entropy"])
def test_each_dtype_has_its_largest_values_in_a_last_block(op: str, is_interpreted: bool) -> None:
    for seed in range(4):
        plan = plan_of(op, seed=seed, device=DeviceFacts(is_interpreted=is_interpreted))
        late = [c for c in plan.cases if c.special == "largest at the end"]
        assert {c.dtype for c in late if max(c.shape[-2:]) > 128} == {*operators.load(op).dtypes}


@pytest.mark.in_turn
def test_the_interpreter_has_a_product_of_many_columns() -> None:
    device = DeviceFacts(is_interpreted=True)
    plan = plan_of("linear_cross_entropy", device=device)
    assert max(c.shape[1] for c in plan.cases if c.extent) == 40_009
    assert plan.scope is not None
    assert "over 65,535 columns" in {e.item for e in plan.scope.extents}
    op = operators.load("linear_cross_entropy")
    past = 0
    for case in (c for seed in range(10) for c in plan_of(op.name, seed=seed, device=device).cases):
        if case.extent == "over 32,767 columns" and case.has_plain_values:
            past += bool((make_pristine(op, case, CPU)[2] > 32_767).any())
    assert past >= 8


def test_products_have_a_long_reduction_on_each_device() -> None:
    for device, longest in ((DeviceFacts(), 16_384), (DeviceFacts(is_interpreted=True), 8_192)):
        assert max(c.shape[-1] for c in plan_of("matmul", device=device).cases) > longest


@pytest.mark.parametrize("device", [GPU, DeviceFacts(is_interpreted=True)])
@pytest.mark.parametrize("name", ["matmul", "attention", "mha", "gqa", "relu", "rope"])
def test_each_leading_dimension_is_large_by_itself(name: str, device: DeviceFacts) -> None:
    cases = [c for c in plan_of(name, device=device).cases if c.has_plain_values and not c.size]
    rank = len(operators.smallest_shape(operators.load(name)))
    largest = [max(c.shape[i] for c in cases if len(c.shape) == rank) for i in range(rank)]
    varied = [i for i in range(rank) if name != "rope" and (name, i) != ("gqa", 2)]
    assert all(largest[i] > 128 for i in varied or range(2, rank))


@pytest.mark.parametrize("name", ["relu", "vector_add", "swiglu"])
def test_elementwise_ops_have_a_grid_of_over_512_blocks(name: str) -> None:
    for device, most in ((GPU, 2**20), (DeviceFacts(is_interpreted=True), 2**19)):
        sizes = {math.prod(c.shape) for c in plan_of(name, device=device).cases if not c.size}
        assert any(n > most and n % 1024 for n in sizes)


def test_attention_has_long_heads_and_many_of_them() -> None:
    thorough = {c.extent: c.shape for c in plan_of("attention", "thorough").cases}
    assert thorough["head_dim over 128"][-1] == 160
    assert math.prod(thorough["over 65,535 heads"][:2]) > 65_535
    assert "over 65,535 heads" in {c.extent for c in plan_of("attention").cases}


# ----------------------------------------------------------------------------------- quick


def test_a_quick_plan_has_the_sizes_and_some_combinations() -> None:
    quick = plan_of("softmax", "quick").cases
    assert len(quick) <= len(plan_of("softmax").cases) / 5
    assert {c.size for c in quick} >= {"small", "medium", "large"}
    assert sum(len(c.changes) >= 2 for c in quick) >= 2
    assert plan_of("softmax", "quick").scope is None


def test_quick_plans_of_all_seeds_have_the_same_forms() -> None:
    first, other = (plan_of("vector_add", "quick", seed=seed).cases for seed in (1, 2))
    forms = [[(c.shape, c.dtype, c.layouts) for c in cases] for cases in (first, other)]
    assert forms[0] == forms[1]
    assert [c.changes for c in first] != [c.changes for c in other]


@pytest.mark.in_turn
def test_a_quick_plan_of_a_mean_tells_precisions_apart() -> None:
    path = KERNELS / "right" / "cross_entropy_two_kernels.py"
    verdict = run_validation(path, plan="quick", dtypes=("float32",))
    assert verdict.status is Status.PASSED, verdict
    assert any(c.calibrated for c in verdict.run_cases)


# ----------------------------------------------------------------------------- the plan job


def make_plan(kind: str, **changes: object) -> Plan:
    job = PlanJob(op=OpRef(name="softmax"), seed=7, device_kind=kind, **changes)
    answer, _ = planning.run(job, Recorder())
    assert isinstance(answer, Plan)
    return answer


def test_plan_verb_lists_the_cases_of_a_validation() -> None:
    op = operators.load("softmax")
    assert make_plan("gpu").cases == plan_cases(op, job_for(RIGHT), GPU).cases
    assert make_plan("gpu").not_run == ()
    narrow = make_plan("gpu", plan="quick", dtypes=("float16",))
    quick = job_for(RIGHT, plan="quick", dtypes=("float16",))
    assert narrow.cases == plan_cases(op, quick, GPU).cases


def test_plan_lists_cases_that_a_cpu_skips() -> None:
    plan = make_plan("interpreter", shapes=((7, 13), (257, 1023)), dtypes=("float32", "bfloat16"))
    assert [c.shape for c in plan.run_cases] == [(7, 13), (257, 1023)]
    assert {c.case.dtype for c in plan.not_run} == {"bfloat16"}
    assert all("bfloat16 wrongly" in str(c.reason) for c in plan.not_run)
    large = [c for c in make_plan("interpreter").not_run if c.case.size == "large"]
    assert len(large) == 3


def test_a_dtype_refused_by_a_cpu_takes_no_pairs_of_others() -> None:
    plan = make_plan("interpreter")
    assert {c.dtype for c in plan.cases if c.shape_class} == {"float32", "float16"}
    assert {c.case.size for c in plan.not_run if c.case.dtype == "bfloat16"} == {
        "small", "medium", "large",
    }  # fmt: skip
    assert plan.scope is not None
    assert [e.item for e in plan.scope.impossible][-1] == "bfloat16"


def test_own_shapes_come_last_unless_shapes_are_named() -> None:
    plan = make_plan("interpreter", own_shapes=((8192, 151936), (3, 5)))
    own = [c for c in plan.cases if c.size == "own"]
    assert plan.cases[-len(own) :] == tuple(own)
    assert {(c.shape, c.dtype) for c in own} == {
        (s, d) for s in ((8192, 151936), (3, 5)) for d in ("float32", "float16", "bfloat16")
    }
    assert (3, 5) in {c.shape for c in plan.run_cases}
    assert (8192, 151936) not in {c.shape for c in plan.run_cases}
    assert make_plan("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases[0].shape == (7, 13)
    assert len(make_plan("gpu", shapes=((7, 13),), own_shapes=((3, 5),)).cases) == 3


@pytest.mark.parametrize("name", operators.names())
def test_some_shape_has_several_of_every_dimension(name: str) -> None:
    op = operators.load(name)
    if op.shapes and len(operators.smallest_shape(op)) > 1:
        assert any(min(shape) > 1 for shape in shape_classes.representatives(op).values())
