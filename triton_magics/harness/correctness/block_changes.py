"""Faults of joining blocks as changes of the reference.

A kernel works on a row, or on the terms of a product, block by block, and joins what it has. It may
weigh the blocks wrongly, keep the last one alone, or do in each step what belongs behind the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from triton_magics.harness.correctness.reduction_changes import (
    BLOCKS,
    PRODUCTS,
    averages_last,
    squared_distances,
)
from triton_magics.harness.correctness.reference_changes import Simple, bind, describe
from triton_magics.harness.correctness.reference_trace import TracedOperation
from triton_magics.model import CauseCode

_FORMULA = CauseCode.WRONG_FORMULA


def changes_of_blocks(o: TracedOperation) -> Iterator[Simple]:
    """Yield the changes of an operation that stand for a wrong join of its blocks."""
    if averages_last(o):
        yield from _plain_averages(o)
    if o.name == "sum":
        yield from _spreads_within(o)
    if o.name == "gather":
        yield from _picks_of_the_last(o)
    if o.name in ("mul", "add"):
        yield from _in_each_step(o)


def _blocks(n: int) -> list[int]:
    """Return lengths of blocks of n elements; the last one is n, with which nothing changes."""
    return [b for b in BLOCKS if b < n] + [n]


def _plain_averages(o: TracedOperation) -> Iterator[Simple]:
    n = o.args[0].shape[-1]
    for block in _blocks(n):
        text = f"{describe(o)} is the plain average of those of blocks of {block}"
        yield _FORMULA, f"{text}, of which the last may be shorter", bind(_average_blocks, block)


def _average_blocks(o: TracedOperation, block: int) -> torch.Tensor:
    means = [part.mean(-1, keepdim=True) for part in o.args[0].split(block, -1)]
    return torch.stack(means).mean(0).reshape(o.result.shape)


def _spreads_within(o: TracedOperation) -> Iterator[Simple]:
    """Yield squared distances to the mean of a block: without those between the blocks."""
    distance = squared_distances(o)
    if distance is None or distance.args[0].shape[-1] * o.result.numel() != distance.result.numel():
        return
    for block in _blocks(distance.args[0].shape[-1]):
        text = f"the spread between blocks of {block} is left out of {describe(o)}"
        yield _FORMULA, text, bind(_sum_within, distance.args[0], block)


def _sum_within(o: TracedOperation, x: torch.Tensor, block: int) -> torch.Tensor:
    parts = [part - part.mean(-1, keepdim=True) for part in x.split(block, -1)]
    return torch.cat(parts, -1).square().sum(-1).reshape(o.result.shape)


def _picks_of_the_last(o: TracedOperation) -> Iterator[Simple]:
    """Yield a pick that counts where its index lies in the last block, and is 0 elsewhere."""
    x, dim, index = o.args[:3]
    n = x.shape[dim]
    for start in sorted({(n - 1) // b * b for b in _blocks(n)}):
        text = f"{describe(o)} gives 0 where the index lies before the last block"
        yield CauseCode.PARTIAL_EXTENT, text, bind(_pick_from, index >= start)


def _pick_from(o: TracedOperation, counts: torch.Tensor) -> torch.Tensor:
    return torch.where(counts, o.result, 0.0)


def _in_each_step(o: TracedOperation) -> Iterator[Simple]:
    """Yield factors and terms that a product's result gets after each block of its terms."""
    product, steps = _after_a_product(o)
    if product is None:
        return
    name = f"each `{o.name}` up to {describe(o)}" if len(steps) > 1 else describe(o)
    for block in _blocks(product.args[0].shape[-1]):
        text = f"{name} is done after each {block} terms of `{product.name}`, not after all"
        yield _FORMULA, text, bind(_step_by_step, product, steps, block)


def _after_a_product(
    o: TracedOperation,
) -> tuple[TracedOperation | None, list[TracedOperation]]:
    """Return the product whose result an operation changes, and the steps up to the operation."""
    steps: list[TracedOperation] = []
    at: TracedOperation | None = o
    while at and at.name in ("mul", "add") and at.sources[1] is None:
        steps.insert(0, at)
        at = at.sources[0]
    return (at if at and at.name in PRODUCTS else None), steps


def _step_by_step(
    o: TracedOperation, product: TracedOperation, steps: list[TracedOperation], block: int
) -> torch.Tensor:
    a, b = product.args[:2]
    total = torch.zeros_like(product.result)
    for columns, rows in zip(a.split(block, -1), b.split(block, -2), strict=True):
        total = total + columns @ rows
        for step in steps:
            total = step.call(total, step.args[1])
    return total
