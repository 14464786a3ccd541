"""The numbers of a version's source, and the lengths that a plan has because of them."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, job_for, run_cases
from triton_magics import operators
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness.correctness import one_case
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_numbers import (
    MAX_COMPILED,
    MAX_SHAPES,
    MAX_THOROUGH,
    scalars_at_numbers,
    shapes_at_numbers,
    values_at_numbers,
    values_past_numbers,
)
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.shape_classes import MAX_FULL
from triton_magics.harness.correctness.shape_variants import keep_orders, walk_of_dimensions
from triton_magics.languages.source_numbers import (
    _constants,
    read_integers,
    read_integers_at,
    read_numbers,
    read_thresholds,
)
from triton_magics.model import Case, CaseStatus

pytestmark = pytest.mark.in_turn

INTERPRETER = DeviceFacts(is_interpreted=True, refused={"bfloat16": "it computes it wrongly"})
GPU = DeviceFacts()

# A path of its own at a number: a kernel, its text, and the faulty text.
AT_NUMBERS = {
    "a tuned width": (
        "softmax_right",
        "triton.next_power_of_2(n_cols)",
        "{2880: 2048}.get(n_cols) or triton.next_power_of_2(n_cols)",
    ),
    "whole blocks of 224": (
        "softmax_right",
        "triton.next_power_of_2(n_cols)",
        "triton.next_power_of_2(n_cols) if n_cols % 224 else 128",
    ),
    "a hidden size": (
        "right/layer_norm_blocks",
        "n_cols, eps, BLOCK=128",
        "n_cols - (n_cols == 768), eps, BLOCK=128",
    ),
    "80 terms": ("matmul_right", "b, c, M, N, K,", "b, c, M, N, K if K != 80 else 64,"),
    "44 rows": ("matmul_right", "(triton.cdiv(M, 32),", "(triton.cdiv(M, 32) if M != 44 else 1,"),
    "40 heads": ("right/attention_flash", "batch * heads)]", "batch * (heads - (heads == 40)))]"),
    "112 columns of a head": (
        "right/attention_flash",
        "triton.next_power_of_2(dim))",
        "triton.next_power_of_2(dim) // (1 + (dim == 112)))",
    ),
    "whole blocks of 200 positions": (
        "right/attention_flash",
        "triton.cdiv(seq, 32)",
        "triton.cdiv(seq, 32) if seq % 200 else seq // 200 * 6",
    ),
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if n_cols <= 4096:", [4096]),
        ("LIMIT = 1 << 15", [1, 15, 32_768]),
        ("size = 64 * 1024 - 1", [1, 64, 1024, 65_535]),
        ("size = 65_536 // 2", [2, 32_768, 65_536]),
        ("#define WIDTH 4096u // 0x1F", [31, 4096]),
        ("x1 = y2[i3]; v1.2.3", []),
        ("eps = 1e-5; scale = 2.5f", []),
        ("rows = cols.to(tl.int16)", [32_767]),
        ("int16_t row; uint8_t head;", [255, 32_767]),
        ("x = 2 ** 99999999; y = 10 ** 30 ** 30", [2, 10, 30, 99_999_999]),
        ("x = 7 // 0", [7]),
        ("x = 0123", []),
    ],
)
def test_integers_are_read_from_the_text(source: str, expected: list[int]) -> None:
    assert list(read_integers(source)) == expected


def test_numbers_are_read_without_signs() -> None:
    assert read_numbers("alpha == -0.25; 1e400; 2.5f; 1.0 / 8") == (0.125, 0.25, 1.0, 2.5, 8)


def test_a_number_that_is_also_a_fraction_is_one() -> None:
    (number,) = read_numbers("# below -20\nCLOSED = -20.0")
    assert isinstance(number, float)


def number_cases(path: Path, device: DeviceFacts = INTERPRETER, **changes: object) -> list[Case]:
    """Return the cases that a plan has only because of the numbers in a kernel's file."""
    job = job_for(path, **changes)
    op = operators.load(job.op.name)
    blind = PlanJob(op=job.op, plan=job.plan, seed=job.seed, device_kind="gpu")

    def kind(case: Case) -> tuple[object, ...]:
        return case.extent, case.special, case.scalars

    without = {*map(kind, plan_cases(op, blind, device).cases)}
    return [c for c in plan_cases(op, job, device).cases if kind(c) not in without]


@pytest.mark.parametrize("name", AT_NUMBERS)
def test_a_fault_at_a_number_of_the_source_is_caught(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_case, "explain_wrong_values", lambda *facts: facts[-1])  # 4 s each
    kernel, right, wrong = AT_NUMBERS[name]
    text = (KERNELS / f"{kernel}.py").read_text()
    assert text.count(right) == 1
    (path := tmp_path / "kernel.py").write_text(text.replace(right, wrong))
    assert any(run_cases(path, case)[0].status.failed for case in number_cases(path))


@pytest.mark.slow  # all cases of each
@pytest.mark.parametrize("kernel", sorted({kernel for kernel, *_ in AT_NUMBERS.values()}))
def test_the_right_kernel_passes_at_these_numbers(kernel: str, tmp_path: Path) -> None:
    path = KERNELS / f"{kernel}.py"
    faults = [texts for name, *texts in AT_NUMBERS.values() if name == kernel]
    (changed := tmp_path / "kernel.py").write_text(path.read_text() + f"# {faults}")
    cases = number_cases(changed)
    assert [result.status for result in run_cases(path, *cases)] == [CaseStatus.PASSED] * len(cases)


def missing(op: str, *numbers: int, planned: tuple[tuple[int, ...], ...] = (), **how: object):
    options = {"plan": "full", "is_interpreted": True, **how}
    one = operators.load(op)
    return shapes_at_numbers(one, numbers, planned or one.shapes, **options)


def test_lengths_of_other_cases_are_not_repeated() -> None:
    shapes = operators.load("softmax").shapes  # with 129 columns, 1000 rows, 4097 columns
    own = [(129, 387), (130, 130)]
    assert [*missing("softmax", 129).values()] == own
    assert missing("softmax", 129, planned=(*shapes, *own)) == {}  # 387 rows are too many


def test_a_length_lies_between_those_that_the_op_declares() -> None:
    long = ((2, 130, 2000, 256),)
    assert missing("attention", 288, planned=long).keys() == {"288 positions", "289 positions"}
    assert {s[3] for s in missing("attention", 112, planned=long).values()} == {64, 112}
    assert {s[3] for s in missing("attention", 100, planned=long).values()} == {64}


def test_shapes_that_the_reference_refuses_are_left_out() -> None:
    shapes = missing("gqa", 39).values()  # heads of queries are shared by heads of keys
    assert shapes
    assert all(heads % keys == 0 for _, heads, keys, *_ in shapes)


@pytest.mark.parametrize("longest", [40, 900])
def test_a_plan_has_one_more_than_a_number(longest: int) -> None:
    planned = ((1, 1, longest, 64), (1, 1, 16, 64))
    shapes = missing("attention", 60, planned=planned).values()
    assert {60, 61} <= {shape[2] for shape in shapes}


@pytest.mark.parametrize(
    ("how", "most"),
    [
        ({"is_interpreted": True}, MAX_SHAPES),
        ({"is_interpreted": False}, MAX_COMPILED),
        ({"is_interpreted": False, "plan": "thorough"}, MAX_THOROUGH),
    ],
)
def test_many_numbers_give_few_small_shapes(how: dict[str, object], most: int) -> None:
    shapes = missing("matmul", *range(3, 3000, 7), **how)
    assert len(shapes) == most
    assert max(map(math.prod, shapes.values())) <= MAX_FULL


def test_parameters_take_numbers_of_their_range() -> None:
    add = operators.load("vector_add")  # alpha is declared as 1.0, -2.0, 0.1, 0.0
    assert scalars_at_numbers(add, ()) == [("alpha", -1.0)]
    further = [("alpha", -1.0), ("alpha", 0.25), ("alpha", -0.25)]
    assert scalars_at_numbers(add, (0.25, 3)) == further
    assert scalars_at_numbers(operators.load("layer_norm"), (1e-4, 1e-9)) == [("eps", 1e-4)]
    assert scalars_at_numbers(operators.load("mha"), (0.5,)) == []  # is_causal


def test_a_parameter_of_zero_is_planned_elsewhere() -> None:
    add = dataclasses.replace(operators.load("vector_add"), scalars={"alpha": (2.0, -2.0)})
    assert scalars_at_numbers(add, ()) == []
    assert scalars_at_numbers(add, (2.0, 3.0), {2.0}) == [("alpha", 1.96)]


def test_parameters_lie_on_both_sides_of_a_threshold() -> None:
    add = operators.load("vector_add")  # alpha is declared as 1.0, -2.0, 0.1, 0.0
    values = [value for _, value in scalars_at_numbers(add, (0.1, 0.25), {0.1, 0.25, 3.0})]
    assert values[-4:] == pytest.approx([0.098, 0.102, 0.245, 0.255])
    assert 0.098 not in dict(scalars_at_numbers(add, (0.1,))).values()


@pytest.mark.parametrize(
    ("test", "is_wrong"),
    [
        pytest.param("alpha == 1", False, marks=pytest.mark.slow),
        ("abs(alpha) == 1", True),
    ],
)
def test_a_factor_that_is_left_out_is_caught(test: str, is_wrong: bool, tmp_path: Path) -> None:
    kernel = KERNELS / "right" / "add_strided.py"
    (path := tmp_path / "add.py").write_text(
        kernel.read_text().replace(
            "    out = ", f"    alpha = 1.0 if {test} else alpha\n    out = ", 1
        )
    )
    job = job_for(path)
    cases = plan_cases(operators.load("vector_add"), job, INTERPRETER).cases
    results = run_cases(
        path, *(c for c in cases if c.scalars in ((("alpha", -1.0),), (("alpha", 0.0),)))
    )
    assert any(result.status.failed for result in results) is is_wrong


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("gelu", (88.5, 1e-5, 5.0, 1e9), ["values near 88.5", "values near 1e-05"]),  # 5: usual
        ("gelu", (64, 4096, 88.5), ["values near 88.5", "values near 4096.0", "values near 64.0"]),
        ("attention", (88.5, 1e-5), ["values near 1e-05"]),  # no large values mean anything there
    ],
)
def test_values_at_numbers_that_usual_values_pass_by(
    op: str, numbers: tuple[float, ...], expected: list[str]
) -> None:
    dtypes = ("float32", "float16")
    own = values_at_numbers(operators.load(op), numbers, dtypes)
    assert [name for name, _ in own] == expected
    assert ("values near 4096.0", "float16") not in own


def test_thresholds_are_the_numbers_beside_a_comparison() -> None:
    text = "if m < -4.0:\n  y = 1e3f > x\n  b[7], x << 2, 3 << x, x >> 5, p->n, n <= 4096, z * 3.5"
    assert read_thresholds(text) == {4.0, 1000.0, 4096}
    text = "n <= 2**18; WIDE = n >= 2**31 - BLOCK; 1 << 4 < n"
    assert read_thresholds(text) == {2**18, 2**31, 16}


def test_a_line_has_its_numbers_and_those_of_its_constants() -> None:
    text = "MANY = 3 * 2**5  # queries\nLESS: int = 7\nMANY = f(5)\nif n > MANY - LESS or x > 40:\n"
    assert read_integers_at(text, 4) == (7, 40, 96)
    assert read_integers_at(text, 2) == (7,)
    assert read_integers_at(text, 0) == read_integers_at(text, 5) == ()


def test_a_constant_of_other_constants_is_a_number_of_the_source() -> None:
    text = (
        "CHUNK = 4096\nLONG: int = 4 * CHUNK  # columns\nif n >= LONG * m:\n    HALF = 9 * LONG\n"
    )
    assert read_integers(text) == (4, 9, 4096, 16_384)
    assert read_integers_at(text, 3) == (16_384,)


@pytest.mark.parametrize(
    "text", ["7 % 3", "((((9**40)**40)**40)**40)**40", "True", "-8", "f(3)", "[4]", "4 if x else 5"]
)
def test_what_is_no_constant_has_the_numbers_that_are_written(text: str) -> None:
    assert "N" not in _constants(f"N = {text}\n")
    assert read_integers_at(f"N = {text}\nif n > N + 12:\n", 2) == (12,)


def test_all_values_are_past_a_number_on_either_side() -> None:
    gelu, mha = operators.load("gelu"), operators.load("mha")
    own = values_past_numbers(gelu, (0, 0.5, 1, 4.0, 256, 100.0), {4.0, 256}, ("float32",))
    assert [name for name, _ in own] == [
        "values past 4.0", "values past -4.0", "values past 100.0", "values past -100.0",
        "NaN beside values past 4.0", "NaN beside values past -4.0",
    ]  # fmt: skip
    assert [name for name, _ in values_past_numbers(mha, (4.0,), (), ("float32",))] == [
        "values past 4.0"  # it leaves negative values out
    ]
    assert values_past_numbers(mha, (88.5,), (), ("float32",)) == []  # and a large mean
    halves = ("float32", "float16")  # what exp leaves far below 0 is 0 in a half type
    assert {dtype for _, dtype in values_past_numbers(gelu, (20.0,), (), halves)} == {"float32"}
    case = Case(shape=(7, 13), dtype="float16", special="values past -4.0", seed=1)
    (x,) = make_pristine(gelu, case, torch.device("cpu"))
    assert (x < -4.0).all()
    assert (x >= -8.0).all()
    (x,) = make_pristine(gelu, case.evolve(special=f"NaN beside {case.special}"), x.device)
    assert x.isnan().sum(1).tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert (x[~x.isnan()] < -4.0).all()


@pytest.mark.parametrize(
    ("kernel", "right_kernel"),
    [
        ("eleventh/gelu_zero_for_negative_tiles", "right/gelu_flat"),
        ("twentyninth/swiglu_closed_gates", "swiglu_right"),  # its limit is an argument
    ],
)
def test_a_short_way_for_tiles_past_a_number_is_caught(kernel: str, right_kernel: str) -> None:
    path = KERNELS.parent / "unseen_kernels" / f"{kernel}.py"
    cases = [c for c in number_cases(path) if c.special.startswith("values past")]
    assert any(result.status.failed for result in run_cases(path, *cases))
    right = run_cases(KERNELS / f"{right_kernel}.py", *cases)
    assert {result.status for result in right} == {CaseStatus.PASSED}


def test_a_long_row_has_few_rows_beside_it() -> None:
    shapes = shapes_at_numbers(
        operators.load("dropout"), (8192,), {(1, 280_009)}, plan="full", is_interpreted=True
    )
    assert (2, 24_576) in shapes.values()


def test_the_numbers_of_a_random_op_meet_many_elements() -> None:
    path = KERNELS.parent / "unseen_kernels" / "thirteenth" / "dropout_quarter_bits.py"
    own = [case for case in number_cases(path) if ("p", 0.25) in case.scalars]
    assert [case.shape for case in own] == [(127, 129)]


@pytest.mark.parametrize("limit", [88.5, 2e-3])
def test_a_fault_from_a_value_on_is_caught(limit: float, tmp_path: Path) -> None:
    """A result is off by a tenth in values up to a quarter beyond the limit."""
    file = tmp_path / "kernel.py"
    text = (KERNELS / "vector_add_right.py").read_text()
    old = "x + alpha * y"
    assert old in text
    new = f"x + alpha * y * tl.where((y > {limit}) & (y < {1.25 * limit}), 0.9, 1.0)"
    file.write_text(text.replace(old, new))
    cases = [c for c in number_cases(file) if c.special.startswith("values near")]
    assert any(result.status.failed for result in run_cases(file, *cases))
    right = run_cases(KERNELS / "vector_add_right.py", *cases)
    assert not any(result.status.failed for result in right)


def test_an_op_without_shapes_has_none() -> None:
    op = operators.load("softmax")
    assert op.shapes
    bare = type("Bare", (), {"shapes": (), "sizes": op.sizes})()
    assert shapes_at_numbers(bare, (48,), (), plan="full", is_interpreted=True) == {}


def test_a_quick_plan_has_none() -> None:
    path = KERNELS / "right" / "matmul_descriptors.py"
    assert number_cases(path)
    assert not number_cases(path, plan="quick")
    assert number_cases(path, GPU)


def own_op(sizes: tuple[int, ...], *shapes: tuple[int, ...], **facts: object) -> operators.Op:
    op = operators.load("vector_mul")
    return dataclasses.replace(op, sizes={"small": sizes}, shapes=shapes, extents={}, **facts)


def test_dimensions_keep_their_order() -> None:
    square = own_op((64, 64), (5, 5), (100, 100))
    prefix = own_op((4, 16, 64), (2, 5, 9), (3, 7, 7), (1, 40, 41))
    loose = own_op((4, 16, 64), (2, 5, 900), (3, 7, 8))
    assert keep_orders(square, (48, 5)) == (48, 48)
    assert keep_orders(prefix, (2, 48, 9)) == (2, 48, 48)
    assert keep_orders(loose, (2, 48, 9)) == (2, 48, 9)
    assert keep_orders(operators.load("matmul"), (64, 5, 13)) == (64, 5, 13)
    assert keep_orders(operators.load("gqa"), (1, 2, 4, 7, 64)) == (1, 4, 4, 7, 64)
    walk = walk_of_dimensions(square)
    assert walk[:5] == [(5, 5), (100, 100), (5, 5), (100, 100), (5, 5)]
    assert walk[5:] == [(32, 32), (33, 33), (47, 47)]


def test_parameters_stay_where_the_reference_is_finite() -> None:
    def divide(x: torch.Tensor, d: float) -> torch.Tensor:
        return x / d

    op = own_op(
        (64, 64), (5, 7), scalars={"d": (2.0, -0.5)}, reference=divide,
        make_inputs=lambda shape, dtype, device, draw: (torch.ones(shape, dtype=dtype), 2.0),
    )  # fmt: skip
    values = [value for _, value in scalars_at_numbers(op, (1e-30, 0.75))]
    assert values == [1.0, 0.75]  # 0 divides by zero, and 1e-30 is nearer to it than all declared


def test_many_numbers_and_long_ones_are_read_fast() -> None:
    table = ", ".join(map(str, range(3, 6000, 7)))
    assert len(missing("attention", *read_integers(table))) == MAX_SHAPES
    assert read_integers("9" * 20_000 + "x") == ()
    assert read_integers("0x" + "f" * 20_000 + "x") == ()
