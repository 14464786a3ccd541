"""A plan for a compiler combines values so that few kernels are compiled, and loses no pair."""

from __future__ import annotations

import itertools
from collections.abc import Hashable

import pytest

from tests.harness.test_plan import GPU, plan_of
from triton_magics.harness.correctness.case_plan import DeviceFacts
from triton_magics.harness.correctness.covering_array import CoveringArray, Item, covering_array
from triton_magics.model import Plan

FACTORS = {"dtype": "abc", "shape": "abcdefg", "x": "abcdef", "y": "abcdef", "regime": "abcde"}


def trait(item: Item) -> Hashable:
    """Return the dtype, the shape, and for x and y if they are `f`."""
    factor, value = item
    if factor in ("dtype", "shape"):
        return item
    return (factor, value == "f") if factor in ("x", "y") else None


def array_of(seed: int, new_kind_cost: int) -> CoveringArray:
    return covering_array(
        FACTORS, strength=2, forbids=lambda one, other: False, seed=seed, trait=trait,
        new_kind_cost=new_kind_cost,
    )  # fmt: skip


def n_kinds(array: CoveringArray) -> int:
    return len({frozenset(map(trait, row.items())) for row in array.rows})


def test_rows_of_few_kinds_have_every_pair() -> None:
    free, costly = ([array_of(seed, cost) for seed in range(5)] for cost in (0, 1))
    for array in costly:
        pairs = {p for row in array.rows for p in itertools.combinations(sorted(row.items()), 2)}
        assert len(pairs) == array.n_possible == free[0].n_possible
    assert sum(map(n_kinds, costly)) < 0.85 * sum(map(n_kinds, free))
    assert sum(len(a.rows) for a in costly) <= 1.05 * sum(len(a.rows) for a in free)


def n_specialisations(plan: Plan) -> int:
    """Return the number of kernels if these depend on dtype, shape and alignment."""
    unaligned = {c: [name for name, at in c.layouts if at == "unaligned"] for c in plan.cases}
    return len({(c.shape, c.dtype, *unaligned[c]) for c in plan.cases if 0 not in c.shape})


@pytest.mark.parametrize(("op", "most"), [("layer_norm", 104), ("cross_entropy", 88)])
def test_a_plan_for_a_gpu_compiles_few_kernels(op: str, most: int) -> None:
    """Eight of them are the similar lengths of the walk, three the many rows, one
    the largest size, one four dimensions, two wide batches, one a length of one, four the long
    rows, four inexact reciprocals, a strided row, rows that grow, twice the largest size less one,
    many long rows, nine flat ones, six composed rows: most kernels depend on their columns alone,
    which others have."""
    assert all(n_specialisations(plan_of(op, seed=seed, device=GPU)) <= most for seed in range(4))


def test_an_interpreter_has_no_kernels_to_save() -> None:
    interpreted = plan_of("layer_norm", device=DeviceFacts(is_interpreted=True))
    assert n_specialisations(interpreted) > n_specialisations(plan_of("layer_norm"))
