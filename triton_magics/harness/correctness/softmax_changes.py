"""Faults of a softmax or a sum of exponentials as changes of the reference.

A kernel computes it by blocks, each with a maximum of its own. So it may forget to rescale, take
lanes past the end in, or finish a part of the row only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from triton_magics.harness.correctness.reduction_changes import (
    POWERS,
    PRODUCTS,
    lanes_past_the_end,
    parts_of,
)
from triton_magics.harness.correctness.reference_changes import Simple, bind, subtracts_maximum
from triton_magics.harness.correctness.reference_trace import TracedOperation
from triton_magics.model import CauseCode


def changes_of_softmax(o: TracedOperation) -> Iterator[Simple]:
    """Yield the changes of an operation on exponentials of differences from a maximum."""
    exp = o if o.name == "exp" else _weights_of(o)
    difference = exp.origins[0] if exp and exp.origins else None
    if difference is None or not subtracts_maximum(difference):
        return
    scores, top = difference.args[:2]
    if top.shape != (*scores.shape[:-1], 1):
        return
    yield from _without_rescaling(o, scores)
    if o.name == "sum":
        yield from _lanes_of_zero(o, scores, top)
    if o.name == "div" and o.sources[0] is exp:
        yield from _of_a_part(o, scores)
        yield from _masked_at_zero(scores)


def _weights_of(o: TracedOperation) -> TracedOperation | None:
    """Return the exponentials that an operation adds up or divides; those of a product too."""
    if o.name not in ("sum", "div", *PRODUCTS) or not o.origins:
        return None
    first = o.origins[0]
    if o.name in PRODUCTS and first is not None and first.name == "div":
        first = first.origins[0]
    return first if first is not None and first.name == "exp" else None


def _without_rescaling(o: TracedOperation, scores: torch.Tensor) -> Iterator[Simple]:
    """Yield sums by blocks of which some are not rescaled to the maximum of the whole row."""
    if o.name == "div":
        return
    target = {"exp": "no sum", "sum": "the sum"}.get(o.name, "the accumulator")
    for block in (b for b in POWERS if b < scores.shape[-1]):
        text = f"{target} is rescaled where the maximum of a block of {block} is a new one"
        if o.name != "exp":
            text = f"{target} is not rescaled where the maximum of a block of {block} is a new one"
        yield CauseCode.MISSING_MAXIMUM, text, bind(_with_running_maximum, scores, block)
        text = f"{target} of each block of {block} is rescaled along with the blocks before it"
        yield CauseCode.MISSING_MAXIMUM, text, bind(_with_blocks_before, scores, block)
        for rescaled, words in ((False, "no maximum"), (True, "the maximum so far only")):
            text = f"{target} of each block of {block} is rescaled to {words}"
            change = bind(_with_own_maximum, scores, block, rescaled)
            yield CauseCode.MISSING_MAXIMUM, text, change


def _with_running_maximum(o: TracedOperation, scores: torch.Tensor, block: int) -> torch.Tensor:
    tops, n = _tops(scores, block), scores.shape[-1]
    running = tops.cummax(-1).values.repeat_interleave(block, -1)[..., :n]
    grown = torch.exp(scores.amax(-1, keepdim=True) - running).nan_to_num(posinf=0.0)
    return _times(o, grown)


def _with_blocks_before(o: TracedOperation, scores: torch.Tensor, block: int) -> torch.Tensor:
    """Add up blocks, each below the maximum so far and then shrunk as if it were below the last.

    So the first block is lost.
    """
    running = _tops(scores, block).cummax(-1).values
    before = torch.nn.functional.pad(running, (1, 0), value=-math.inf)[..., :-1]
    shrunk = torch.exp(before - running).nan_to_num(0.0)
    return _times(o, shrunk.repeat_interleave(block, -1)[..., : scores.shape[-1]])


def _with_own_maximum(
    o: TracedOperation, scores: torch.Tensor, block: int, rescaled: bool
) -> torch.Tensor:
    """Add up blocks, each below its own maximum; rescale them later, or not at all."""
    own = _tops(scores, block)
    to = own.cummax(-1).values if rescaled else own.amax(-1, keepdim=True)
    grown = torch.exp(to - own).nan_to_num(posinf=0.0)
    return _times(o, grown.repeat_interleave(block, -1)[..., : scores.shape[-1]])


def _tops(scores: torch.Tensor, block: int) -> torch.Tensor:
    padded = torch.nn.functional.pad(scores, (0, -scores.shape[-1] % block), value=-math.inf)
    return padded.unflatten(-1, (-1, block)).amax(-1)


def _times(o: TracedOperation, factor: torch.Tensor) -> torch.Tensor:
    """Multiply the exponentials that an operation takes, or gives."""
    if o.name == "exp":
        return o.result * factor
    first: Any = o.args[0] * factor.reshape(o.args[0].shape)
    return o.call(first, *o.args[1:])


def _lanes_of_zero(o: TracedOperation, scores: torch.Tensor, top: torch.Tensor) -> Iterator[Simple]:
    """Yield the sum with lanes of score 0: the result is the same for each maximum above them."""
    each = torch.exp(-top).reshape(o.result.shape)
    for lanes in lanes_past_the_end(scores.shape[-1]):
        text = f"{lanes} lanes of score 0 past the end of each row take part"
        yield CauseCode.WRONG_FILL, text, bind(lambda op, more: op.result + more, lanes * each)


def _of_a_part(o: TracedOperation, scores: torch.Tensor) -> Iterator[Simple]:
    """Yield a softmax of the first elements of a row; the others stay as they are."""
    for part, places in parts_of(scores.shape[-1]):
        if part.startswith("the first"):
            softmax = torch.softmax(scores[..., places], -1)
            whole = torch.cat([softmax, scores[..., len(places) :]], -1)
            text = f"the softmax takes {part}, and the others stay as they are"
            yield CauseCode.PARTIAL_EXTENT, text, bind(lambda _, x: x, whole)


def _masked_at_zero(scores: torch.Tensor) -> Iterator[Simple]:
    """Yield a softmax in which what is masked has the score 0, lanes past the end too."""
    filled = torch.where(scores.isneginf(), 0.0, scores)
    for lanes in (0, *lanes_past_the_end(scores.shape[-1])):
        padded = torch.nn.functional.pad(filled, (0, lanes))
        softmax = torch.softmax(padded, -1)[..., : scores.shape[-1]]
        text = f"what is masked has the score 0, and {lanes} lanes past the end of each row"
        yield CauseCode.WRONG_FILL, text, bind(lambda _, x: x, softmax)
