"""Cases of layouts and lengths beside the design."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, job_for, run_cases
from tests.harness.test_cases_beside import INTERPRETER, UNSEEN
from tests.harness.test_plan import plan_of
from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.case_inputs import make_inputs
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.correctness.layout_cases import (
    INEXACT,
    LARGE_ROWS,
    TURNED_PAIRS,
    UNEVEN_SIZE,
)
from triton_magics.harness.correctness.shape_classes import Shape
from triton_magics.harness.layouts import OF_ALL_TENSORS
from triton_magics.model import Case, CaseStatus

pytestmark = pytest.mark.in_turn

FURTHER = {
    "padded matrices", "padded batches", "padded columns", "every second row", "expanded columns",
    "expanded rows", "expanded matrices", "expanded but rows", "reversed dimensions",
    "transposed and strided", "expanded and strided", "expanded column of a matrix",
    "transposed and padded matrices", "interleaved heads and padded batches",
    "expanded row of a matrix", "batches behind headers",
}  # fmt: skip


def layouts_of(op: str) -> list[tuple[Case, str]]:
    path = next(p for p in KERNELS.rglob("*.py") if f"\nop: {op}\n" in p.read_text())
    plan = plan_cases(operators.load(op), job_for(path), INTERPRETER)
    return [(case, case.layouts[0][1]) for case in plan.cases if case.layouts]


def test_most_further_layouts_are_for_all_tensors_and_for_each() -> None:
    own = [
        (case, layout)
        for case, layout in layouts_of("mha")
        if layout in FURTHER and case.shape[:2] not in {(3, 5), (4, 3)}
    ]
    of_matrices = FURTHER - {"expanded but rows"}
    assert {layout for _, layout in own} == of_matrices
    for layout in of_matrices:
        tensors = [3] if layout in OF_ALL_TENSORS else [1, 1, 1, 3]
        assert sorted(len(case.layouts) for case, name in own if name == layout) == tensors
    assert {case.special for case, _ in own} == {"plain"}


@pytest.mark.parametrize(("op", "shape"), [("mha", (3, 5, 7, 64)), ("gqa", (3, 5, 1, 7, 64))])
def test_batches_of_five_heads_do_not_lie_one_after_the_other(op: str, shape: Shape) -> None:
    named = [(c.shape, layout) for c, layout in layouts_of(op) if "permuted" not in layout]
    own = [each for each in named if each[0] == shape]
    expected = ("interleaved heads", "padded batches", "padded matrices")
    assert sorted(own) == [(shape, layout) for layout in expected]


def test_heads_of_all_batches_fit_a_group_of_four() -> None:
    own = [(case.shape, layout) for case, layout in layouts_of("mha")]
    assert ((4, 3, 7, 64), "interleaved heads") in own


def test_an_op_of_any_rank_has_a_number_for_each_row() -> None:
    own = [case for case, layout in layouts_of("vector_mul") if layout == "expanded but rows"]
    assert sorted((len(case.shape), len(case.layouts)) for case in own) == [
        (3, 1), (3, 1), (3, 2), (4, 2),
    ]  # fmt: skip


def test_the_strides_of_a_layout_are_those_of_a_slice_of_more() -> None:
    for layout, expected in {
        "padded matrices": torch.empty(2, 4, 19, 32)[:, :, :16].stride(),
        "padded batches": torch.empty(2, 7, 16, 32)[:, :4].stride(),
        "batches behind headers": (4 * 16 * 32 + 3, 16 * 32, 32, 1),
        "padded columns": torch.empty(2, 4, 32, 19)[..., :16].mT.stride(),
        "every second row": torch.empty(2, 4, 32, 32)[:, :, ::2].stride(),
        "transposed and strided": (4 * 32 * 38, 32 * 38, 2, 38),
        "expanded columns": (64, 16, 1, 0),
        "expanded rows": (128, 32, 0, 1),
        "expanded matrices": (512, 0, 32, 1),
        "expanded but rows": (0, 0, 1, 0),
        "expanded and strided": torch.empty(4, 16, 32, 4)[..., 0].expand(2, 4, 16, 32).stride(),
        "expanded column of a matrix": (256, 64, 4, 0),  # of [2, 4, 16, 4]
        "expanded row of a matrix": torch.empty(2, 4, 16, 32)[..., :1, :]
        .expand(2, 4, 16, 32)
        .stride(),
        "reversed dimensions": torch.empty(32, 16, 4, 2).permute(3, 2, 1, 0).stride(),
        "transposed and padded matrices": torch.empty(2, 4, 35, 16)[:, :, :32].mT.stride(),
        "interleaved heads and padded batches": (
            torch.empty(2, 19, 4, 32)[:, :16].transpose(1, 2).stride()
        ),
    }.items():
        case = Case(shape=(2, 4, 16, 32), dtype="float32", layouts=(("q", layout),), seed=3)
        inputs = make_inputs(operators.load("attention"), case, CPU)
        assert inputs.arguments[0].stride() == expected, layout
        assert torch.equal(inputs.arguments[0], inputs.pristine[0])


def test_a_gpu_has_the_largest_size_in_padded_rows() -> None:
    job = job_for(KERNELS / "right" / "mul_flat.py")
    plans = [plan_cases(operators.load("vector_mul"), job, d) for d in (DeviceFacts(), INTERPRETER)]
    (large,), none = ([c for c in p.cases if c.extent == LARGE_ROWS] for p in plans)
    assert (large.shape, none) == ((4095, 4095), [])  # no power of two, and less than 2^24 elements
    assert large.layouts == (("x", "padded rows"), ("y", "padded rows"))


def test_the_reciprocals_of_some_lengths_are_too_small() -> None:
    for n in map(torch.tensor, INEXACT):
        assert (torch.ones(()) / n.float() * n).item() < 1.0


@pytest.mark.parametrize("op", operators.names())
def test_a_plan_has_lengths_with_such_a_reciprocal(op: str) -> None:
    (case,) = (c for c in plan_of(op).cases if INEXACT[0] in c.shape)
    several = case.shape[:-2] if len(case.shape) >= 4 else case.shape[:-1]
    assert torch.Size(several).numel() > 1  # a kernel is wrong at multiples of the length


def test_a_division_by_a_reciprocal_is_found_there() -> None:
    (case,) = (c for c in plan_of("rope").cases if INEXACT[0] in c.shape)
    wrong = UNSEEN / "twentythird" / "rope_reciprocal_position.py"
    assert run_cases(wrong, case.evolve(dtype="float32"))[0].status is CaseStatus.WRONG_VALUES


@pytest.mark.parametrize("op", ["mha", "gqa", "rope", "attention"])
def test_one_position_of_several_heads_has_any_stride(op: str) -> None:
    (case,) = (
        c
        for c in plan_of(op).cases
        if c.shape[-2] == 1 and len(c.layouts) > 0 and "loose" in c.label
    )
    x = make_inputs(operators.load(op), case, CPU).arguments[0]
    assert x.is_contiguous()
    assert x.stride(-2) == x.numel() > x.shape[-1]


def test_a_gpu_has_the_largest_size_less_one() -> None:
    job = job_for(KERNELS / "softmax_right.py")
    plans = [plan_cases(operators.load("softmax"), job, d) for d in (DeviceFacts(), INTERPRETER)]
    own, none = ([c.shape for c in p.cases if c.extent == UNEVEN_SIZE] for p in plans)
    assert (own, none) == ([(4095, 4095)], [])
    matmul = plan_cases(operators.load("matmul"), job, DeviceFacts())
    assert not [c for c in matmul.cases if c.extent == UNEVEN_SIZE]  # its oracle takes long


def test_a_gpu_has_rows_that_lie_very_far_apart() -> None:
    op, job = operators.load("softmax"), job_for(KERNELS / "softmax_right.py")
    thorough = job.evolve(plan="thorough")
    plans = [plan_cases(op, thorough, facts) for facts in (DeviceFacts(), INTERPRETER)]
    own, none = ([c for c in p.cases if c.extent == "over 2^31 elements apart"] for p in plans)
    assert [(c.shape, c.layouts) for c in own] == [((3, 13), (("x", layouts.FAR_BATCHES),))]
    assert (none, own[0].dtype) == ([], "float16")
    at = layouts.place((3, 13), layouts.FAR_BATCHES)
    assert at is not None
    assert (at.stride, 2 * at.stride[0]) == ((2**30, 1), 2**31)
    assert layouts.place((4, 13), layouts.FAR_BATCHES) is None  # of three only


def test_a_permuted_layout_is_that_of_a_part_of_longer_memory() -> None:
    for layout, expected in {
        "permuted 1-2-0": torch.empty(3, 5, 2).permute(2, 0, 1),
        "permuted 0-2-1 gaps 0-3-0": torch.empty(2, 5, 6)[:, :, :3].mT,
        "permuted 2-0-1 gaps 4-1-0": torch.empty(5, 6, 4)[:, :2, :3].permute(1, 2, 0),
        "permuted 0-1-2 step 2": torch.empty(2, 3, 10)[..., ::2],
    }.items():
        at = layouts.place((2, 3, 5), layout)
        assert at is not None
        assert at.stride == expected.stride(), layout
    assert layouts.place((2, 3), "permuted 1-2-0") is None
    assert layouts.place((2, 3, 5), "permuted 0-1-2") is None  # it is contiguous
    with pytest.raises(ValueError, match="no such layout: 'permutated'"):
        layouts.place((2, 3, 5), "permutated")


@pytest.mark.parametrize("n_dims", [3, 4])
def test_a_dense_permuted_layout_is_not_its_own_inverse(n_dims: int) -> None:
    x = torch.arange(5**n_dims).reshape((5,) * n_dims)
    for seed in range(20):
        layout = layouts.draw_dense(n_dims, random.Random(seed))
        order = [int(dim) for dim in layout.removeprefix("permuted ").split("-")]
        assert not torch.equal(x.permute(order).permute(order), x)


def test_each_number_of_dimensions_has_permuted_layouts() -> None:
    own = [c for c in plan_of("vector_add").cases if "permuted" in c.label and not c.extent]
    assert [len(c.shape) for c in own] == [2, 2, 3, 3, 3] + [4] * (3 + len(TURNED_PAIRS))
    heads = [c for c in plan_of("mha").cases if "permuted" in c.label]
    assert {c.shape for c in heads} == {(3, 5, 7, 64)}
    assert len({layout for c in heads for _, layout in c.layouts}) >= 5
    others = {
        c.label for s in (1, 2) for c in plan_of("mha", seed=s).cases if "permuted" in c.label
    }
    assert len(others) == 6 + len(TURNED_PAIRS)  # those are the same with each seed


def test_a_permutation_in_place_of_its_inverse_is_found() -> None:
    own = [c for c in plan_of("vector_add").cases if "permuted" in c.label]
    results = run_cases(UNSEEN / "twentyfourth" / "vector_add_permuted_back.py", *own)
    wrong = [len(r.case.shape) for r in results if r.status.failed]
    assert {*wrong} == {3, 4}


def test_an_op_that_does_not_take_permuted_tensors_gets_none() -> None:
    names = tuple(name for name in operators.LAYOUTS if name != "permuted")
    op = dataclasses.replace(operators.load("vector_add"), layouts=names)
    plan = plan_cases(op, job_for(KERNELS / "right" / "mul_flat.py"), INTERPRETER)
    assert not [c for c in plan.cases if "permuted" in c.label]


def test_many_long_rows_are_more_than_run_at_once() -> None:
    for op, n in (("mean", 1), ("softmax", 1), ("gelu", 0), ("matmul", 0)):
        own = [c for c in plan_of(op).cases if c.extent == "4,001 long rows"]
        assert len(own) == n
        assert all(math.prod(c.shape) / 4096 > 4 * 132 * 8 for c in own)
        assert {c.dtype for c in own} <= {"float16"}
    interpreted = plan_of("mean", device=INTERPRETER)
    assert not [c for c in interpreted.cases if c.extent == "4,001 long rows"]
