"""Tests of the corpus by classes: its kernels, mutants, witnesses and tables."""

from __future__ import annotations

import ast
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.faults import class_mutants
from tests.faults.class_kernels import (
    CAUSES,
    CLASSES,
    CLASSES_FOLDER,
    ClassKernel,
    class_files,
    read_kernel,
)
from tests.faults.class_operators import CLASS_OPERATORS
from tests.faults.class_witness import WITNESSES, check_right, still_shown
from tests.faults.corpus_causes import CORRECT, grade_explanation, true_cause
from tests.faults.corpus_files import files, kind_of, part_of, part_of_day
from tests.faults.corpus_judges import benchmark_job
from tests.faults.corpus_principles import principles_of
from tests.faults.corpus_tables import (
    class_figures,
    class_text,
    explanation_lines,
    explanations_table,
    missed_of_classes,
    principles_table,
)
from tests.faults.mutate import substitute
from tests.faults.witness_inputs import LAYOUTS, make_witness_inputs
from triton_magics import operators
from triton_magics.model import Case, CaseResult, CaseStatus

MUTANTS = class_mutants.manifest()
BUILT = class_mutants.build()
LATER = ("third", "fourth")  # rounds whose right kernels are held out too
KERNELS = [read_kernel(path) for path in class_files()]
WRONG = [k for k in KERNELS if not k.is_right]
STORED = json.loads(WITNESSES.read_text())
DROPPED = json.loads(class_mutants.DROPPED.read_text())


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_eight_wrong_and_four_right_kernels(name: str) -> None:
    own = [k for k in KERNELS if k.class_name == name]
    assert sum(not k.is_right for k in own) >= 8
    assert sum(k.is_right for k in own) >= 4


def test_the_second_round_has_kernels_of_each_class() -> None:
    second = [k for k in WRONG if k.round == "second"]
    assert len(second) == 60
    assert sum(k.held_out for k in second) == 17
    assert {k.class_name for k in second} == set(CLASSES)
    assert len({k.op for k in second}) >= 12


def test_half_the_wrong_are_drawn_and_a_quarter_held_out() -> None:
    first = [k for k in WRONG if k.round == "first"]
    assert 0.4 < len(MUTANTS) / len(first) < 0.6
    assert 0.2 < sum(k.held_out for k in WRONG) / len(WRONG) < 0.3
    assert not any(k.held_out for k in KERNELS if k.is_right and k.round not in LATER)


@pytest.mark.parametrize(("number", "without"), [("third", ()), ("fourth", ("judge",))])
def test_later_rounds_have_kernels_of_each_class(number: str, without: tuple[str, ...]) -> None:
    own = [k for k in KERNELS if k.round == number]
    wrong = [k for k in own if not k.is_right]
    assert (len(wrong), sum(k.held_out for k in wrong)) == (40, 14)
    assert (len(own) - len(wrong), sum(k.held_out for k in own)) == (20, 21)
    assert {k.class_name for k in wrong} == set(CLASSES) - set(without)
    assert len({k.op for k in own}) == len(operators.names())


def test_the_page_gives_the_number_of_kernels_of_each_class() -> None:
    page = (CLASSES_FOLDER.parents[3] / "docs" / "measured" / "corpus.md").read_text()
    for name, title in CLASSES.items():
        own = [k for k in KERNELS if k.class_name == name]
        wrong = [k for k in own if not k.is_right]
        drawn = sum(k.operator is not None for k in wrong)
        numbers = (len(wrong) - drawn, drawn, sum(k.held_out for k in wrong), len(own) - len(wrong))
        assert f"| `{name}`: {title} | {' | '.join(map(str, numbers))} |" in page


def test_the_classes_cover_every_op() -> None:
    assert {k.op for k in KERNELS} == set(operators.names())


def test_wrong_kernels_and_witnesses_match_one_to_one() -> None:
    assert set(STORED) == {k.path.stem for k in WRONG}
    stated = {name for name, witness in STORED.items() if "stated" in witness}
    assert stated == {k.path.stem for k in WRONG if k.needs == "gpu"}
    assert all(witness["fault"] for name, witness in STORED.items() if name not in stated)


def test_every_draw_is_in_the_manifest_or_dropped_with_a_reason() -> None:
    names = {mutant.name for mutant in MUTANTS}
    assert names | set(DROPPED) >= set(class_mutants.draw_all())
    assert not names & set(DROPPED)
    assert all(DROPPED.values())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_class_mutant_is_one_substitution(mutant: class_mutants.ClassMutant) -> None:
    right = (CLASSES_FOLDER / mutant.class_name / f"{mutant.kernel}.py").read_text()
    place = class_mutants.places(right, mutant.operator)[mutant.place]
    code = mutant.path.read_text().split('"""', 2)[2]
    assert code == substitute(right, *place).split('"""', 2)[2]


QUICK = {
    "values": "mul_checks_one_input",
    "calls": "late_zero_0_softmax_keeps_its_choice",
    "torch": "sum_in_a_thread",
    "launchless": "mul_out_argument",
    "views": "gelu_pool_by_reference_count",
    "leak": "rope_keeps_every_input",
    "tampering": "add_turns_back_the_clock",
    "peeking": "sum_finds_the_reference",
    "state": "sum_default_dtype",
    "statistic": "dropout_one_mask_a_batch",
}


def kernel_named(name: str) -> ClassKernel:
    (kernel,) = (k for k in KERNELS if k.path.stem == name)
    return kernel


@pytest.mark.parametrize("show", QUICK)
def test_a_stored_witness_shows_its_fault_again(show: str) -> None:
    name = QUICK[show]
    assert STORED[name]["show"] == show
    assert still_shown(kernel_named(name), STORED[name])


TODAY = part_of([k for k in WRONG if k.needs is None], part_of_day(date.today()))


@pytest.mark.parametrize("kernel", TODAY, ids=lambda k: k.path.stem)
def test_the_witnesses_of_todays_part_show_their_faults_again(kernel: ClassKernel) -> None:
    assert still_shown(kernel, STORED[kernel.path.stem])


@pytest.mark.parametrize("show", ["values", "torch", "tampering", "state"])
def test_a_right_kernel_near_by_shows_nothing_on_that_input(show: str) -> None:
    near = {
        "values": ("vector_mul", "add_own_strides"),
        "torch": ("sum", "sum_joined_by_torch"),
        "tampering": ("vector_add", "add_measures_itself"),
        "state": ("sum", "add_default_dtype_restored"),
    }
    assert not still_shown(kernel_named(near[show][1]), STORED[QUICK[show]])


@pytest.mark.in_turn
def test_a_right_kernel_has_no_witness_in_its_class() -> None:
    assert check_right(kernel_named("layer_norm_padded_rows")) == []


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "far_rows"])
def test_a_layout_of_a_witness_keeps_shape_and_values(layout: str) -> None:
    op = operators.load("vector_mul")
    witness = {"shape": [2, 3, 6], "layouts": {"1": layout}}
    x, y = make_witness_inputs(op, witness, torch.device("cpu"))
    _, plain = make_witness_inputs(op, {"shape": [2, 3, 6]}, torch.device("cpu"))
    expected = plain[:1].expand(2, 3, 6) if layout == "expanded" else plain
    assert torch.equal(y, expected)
    assert x.is_contiguous()
    usual = layout in ("contiguous", "offset")
    assert (y.stride() == (18, 6, 1)) is usual
    assert (y.storage_offset() == 1) is (layout == "offset")


def test_edits_of_a_witness_change_the_range_they_name() -> None:
    edits = [
        {"input": 0, "set": -2.0},
        {"input": 0, "rows": [1, 2], "absolute": True, "scale": -3.0},
        {"input": 0, "cols": [-1, None], "add": 0.5},
    ]
    (x,) = make_witness_inputs(
        operators.load("sum"), {"shape": [3, 2], "edits": edits}, torch.device("cpu")
    )
    assert x.tolist() == [[-2.0, -1.5], [-6.0, -5.5], [-2.0, -1.5]]


SUBSTITUTIONS = {
    "swap_tensors": ("f(x.stride(0), y.stride(0))", "y.stride(0)"),
    "stride_is_length": ("x.stride(0)", "x.shape[-1]"),
    "unit_stride": ("x.stride(1)", "1"),
    "offsets_in_32_bits": ("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"),
    "cap_block": ("triton.next_power_of_2(n)", "min(128, triton.next_power_of_2(n))"),
    "cap_loop": ("range(0, n, B)", "range(0, tl.minimum(n, 0 + 16 * B), B)"),
    "fill_with_low": (
        "tl.load(p, mask=m, other=-float('inf'))",
        "tl.load(p, mask=m, other=-10000.0)",
    ),
    "mask_with_low": ("tl.where(m, s, -float('inf'))", "tl.where(m, s, -10000.0)"),
    "drop_guard": ("tl.where(new == -float('inf'), 0.0, new)", "new"),
    "ignore_nan": ("tl.sum(x, axis=0)", "tl.sum(tl.where(x == x, x, 0.0), axis=0)"),
    "torch_helper": ("launch_product(a, b)", "torch.matmul(a, b).float()"),
    "share_draws": ("tl.rand(seed, i)", "tl.rand(seed, i // 2)"),
    "low_bits_of_seed": ("tl.rand(seed, i)", "tl.rand(seed & 255, i)"),
    "seed_shifts_the_stream": ("tl.rand(seed, i)", "tl.rand(7, i + seed % 65521)"),
}


@pytest.mark.parametrize("operator", SUBSTITUTIONS)
def test_an_operator_of_a_class_replaces_one_expression(operator: str) -> None:
    source, expected = SUBSTITUTIONS[operator]
    (_, replacement), *_ = class_mutants.places(source, operator)
    assert ast.unparse(replacement) == expected


def test_a_wide_operator_leaves_the_narrow_kernel_alone() -> None:
    narrow = "def kernel_narrow(x):\n    return tl.sum(x, axis=0)\n"
    assert class_mutants.places(narrow, "wide_half") == []
    assert len(class_mutants.places(narrow.replace("narrow", "wide"), "wide_half")) == 1


def test_a_mutant_with_a_side_effect_still_returns_its_output() -> None:
    source = "def triton_sum(x):\n    return x + 1\n"
    (place,) = class_mutants.places(source, "leave_seed")
    scope: dict[str, Any] = {"torch": torch}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        exec(substitute(source, *place), scope)
        assert scope["triton_sum"](2) == 3
        assert torch.initial_seed() == 0


def test_causes_and_operators_use_the_codes() -> None:
    assert {cause for _, cause, _ in CLASS_OPERATORS.values()} <= set(CAUSES)
    own = {"race", "lower_precision", "unset_memory", "wrong_form", "exception"}
    assert {cause for causes in CORRECT.values() for cause in causes} <= {*CAUSES, *own}


def test_every_wrong_kernel_has_a_true_cause() -> None:
    wrong = [p for p in files() if kind_of(p) in ("wrong", "guards", "class_wrong")]
    assert [p.name for p in wrong if true_cause(p) is None] == ["refuses_everything.py"]


@pytest.mark.parametrize(
    "header",
    [
        "op: sum\nstatus: wrong",
        "op: sum\nstatus: failed",
        "op: sum\nstatus: passed\ncause: overflow",
    ],
)
def test_a_header_with_a_missing_or_unknown_field_is_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(f'"""A reason.\n\n{header}\n"""\n')
    with pytest.raises(ValueError, match="kernel.py: write"):
        read_kernel(path)


def failed_case(status: str = "wrong_values", **case: object) -> CaseResult:
    deterministic = case.pop("deterministic", None)
    fields = {"shape": (7, 13), "dtype": "float32", "seed": 1, **case}
    return CaseResult(
        case=Case(**fields), status=CaseStatus(status), reason="", deterministic=deterministic
    )


X10, STRIDED = {"regime": "x10"}, {"layouts": (("x", "strided"),)}
PRINCIPLES_OF = [
    ([failed_case()], ["plain values"]),
    ([failed_case("wrong_dtype")], ["form"]),
    ([failed_case("not_triton")], ["evidence of torch"]),
    ([failed_case("out_of_bounds", **STRIDED)], ["guard bands"]),
    ([failed_case("race")], ["races"]),
    ([failed_case(deterministic=False)], ["repeated calls"]),
    ([failed_case(**X10)], ["regime"]),
    ([failed_case(special="block of -inf")], ["special structure"]),
    ([failed_case(**STRIDED)], ["layout"]),
    ([failed_case(shape=(2, 70_000))], ["extent"]),
    ([failed_case(shape=(2, 4097))], ["plain values"]),
    ([failed_case(dtype="float16")], ["plain values"]),
    ([failed_case(**STRIDED, **X10)], ["combination"]),
    ([failed_case(shape=(3, 4097), **X10)], ["combination"]),
    ([failed_case(dtype="float16", **X10)], ["combination"]),
    ([failed_case(**STRIDED, **X10), failed_case(dtype="float16", **STRIDED)], ["layout"]),
    ([failed_case(**STRIDED, **X10), failed_case()], ["plain values"]),
    ([failed_case(**STRIDED), failed_case(**X10)], ["regime", "layout"]),
    ([failed_case(**STRIDED), failed_case("aliased")], ["layout", "repeated calls"]),
]


@pytest.mark.parametrize(("results", "principles"), PRINCIPLES_OF)
def test_failed_cases_speak_for_principles(
    results: list[CaseResult], principles: list[str]
) -> None:
    assert principles_of(results, operators.load("softmax")) == principles


def test_a_random_op_is_judged_by_its_battery() -> None:
    assert principles_of([failed_case()], operators.load("dropout")) == ["random battery"]


def test_an_explanation_is_graded_by_its_code() -> None:
    assert grade_explanation("wrong_stride", None) == "absent"
    assert grade_explanation("wrong_stride", "wrong_stride") == "correct"
    assert grade_explanation("stale_cache", "stale") == "correct"
    assert grade_explanation("wrong_stride", "constant_factor") == "vague"
    assert grade_explanation("wrong_stride", "missing_maximum") == "misleading"


def result(file: str, **fields: Any) -> dict[str, Any]:
    return {
        "file": file, "class": "layouts", "op": "sum", "right": False, "held_out": False,
        "status": "failed", "passed": False, "message": "", "cause": "wrong_stride",
        "explanation": "absent", "cause_code": None, "caught_by": "validation",
        "principles": ["layout"], **fields,
    }  # fmt: skip


RESULTS = [
    result("a"),
    result("b", principles=["layout", "regime"], explanation="misleading", cause_code="zeros"),
    result("c", caught_by=None, passed=True, principles=[]),
    result("d", caught_by="benchmark", passed=True, principles=[], held_out=True),
    result("e", caught_by=None, passed=True, principles=[], held_out=True),
    result("f", right=True, cause=None, caught_by=None, passed=True),
    result("g", right=True, cause=None),
    result("h", status="skipped", caught_by=None, explanation=None),
    {"file": "old", "kind": "wrong", "status": "failed", "passed": False},
]


def test_tables_count_by_class_and_held_out_kernels_apart() -> None:
    row = class_figures(RESULTS)["classes"]["layouts"]
    assert row["open"] == {
        "wrong": 3, "by_validation": 2, "by_benchmark": 0, "right": 2, "refused": 1,
    }  # fmt: skip
    assert row["held_out"]["wrong"] == 2
    assert row["held_out"]["by_benchmark"] == 1
    assert class_figures(RESULTS)["skipped"] == ["h"]


def test_a_principle_counts_its_own_and_its_sole_catches() -> None:
    table = principles_table(RESULTS)
    assert table["layout"]["caught"] == 2
    assert table["layout"]["share"] == 0.4
    assert table["layout"]["alone"] == ["a"]
    assert table["regime"]["by_class"]["layouts"] == 1
    assert table["regime"]["alone"] == []


def test_explanations_of_caught_kernels_are_counted() -> None:
    counted = {"correct": 0, "vague": 0, "misleading": 1, "absent": 1}
    assert explanations_table(RESULTS) == counted
    assert explanation_lines(RESULTS)[1:] == [
        "explanations of 2: correct 0 (0%), vague 0 (0%), misleading 1 (50%), absent 1 (50%)",
        "  misleading: b: zeros, is wrong_stride",
    ]
    raised = "the search for the cause raised RuntimeError: two devices"
    lines = explanation_lines([*RESULTS, result("i", message=raised)])
    assert lines[-1] == f"  raised: i: {raised}"


def test_missed_are_uncaught_wrong_and_refused_right_kernels() -> None:
    assert [r["file"] for r in missed_of_classes(RESULTS)] == ["c", "e", "g"]


def test_the_text_names_missed_kernels_but_no_held_out_ones() -> None:
    lines = class_text(RESULTS).splitlines()
    assert "  c (wrong_stride)" in lines
    assert not any("e (" in line for line in lines)
    assert "missed: 1 that are held out" in lines
    assert class_text([RESULTS[-1]]) == ""


def test_a_class_kernel_that_passed_can_be_timed() -> None:
    path = class_files()[0].parents[2] / "classes" / "layouts" / "relu_described_rows.py"
    job = benchmark_job(path, "relu", seed=7)
    assert (job.sizes, job.versions[0].entry) == (("small",), "triton_relu")
