"""Find out whether halves of the inputs reach too much of the output, or a whole input nothing.

Where a shape is cut, an index that goes past the end reads 0, as a part that is left out does. At
several whole blocks it reads another block, so that this reaches what it should not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import VersionRaised
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.further_calls import call_guarded, write_values
from triton_magics.harness.correctness.hypotheses import fresh
from triton_magics.harness.correctness.skip_rules import cpu_s
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.model import Case

LIMIT_S = 3.0  # CPU time before the last call
LEAST_SHARE = 0.02  # of an output that has to stay
CLEAR = 8.0  # times the allowed error


@dataclass(frozen=True)
class Separation:
    """The prediction that each half of an input, its indices drawn, reaches no more than it should.

    Attributes:
        case: of the calls; the halves get the values of another one.
    """

    case: Case

    def is_right(self, subject: Subject) -> bool:
        """Return whether it comes true; not if the version raises or there is no time."""
        try:
            return not _reaches_more(subject, self.case)
        except (VersionRaised, UserFault):
            return False


@dataclass(frozen=True)
class Unread:
    """The prediction that no value of an input changes the output.

    Attributes:
        case: of the calls.
        name: of the input.
    """

    case: Case
    name: str

    def is_right(self, subject: Subject) -> bool:
        """Return whether it comes true; not if the version raises."""
        inputs = subject.make_inputs(self.case)
        others = subject.make_inputs(fresh(self.case)).pristine
        names = subject.op.input_names(len(others))
        triples = zip(names, inputs.pristine, others, strict=True)
        changed = tuple(other if n == self.name else x for n, x, other in triples)
        like = oracle.compute_torch_outputs(subject.op, inputs.pristine).outputs
        try:
            before, after = (
                _outputs(subject, inputs, values, like) for values in (inputs.pristine, changed)
            )
        except (VersionRaised, UserFault):
            return False
        pairs = zip(before, after, strict=True)
        return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)


def _reaches_more(subject: Subject, case: Case) -> bool:
    deadline = cpu_s() + LIMIT_S
    inputs = subject.make_inputs(case)
    first, others = inputs.pristine, subject.make_inputs(fresh(case)).pristine
    expected = oracle.compute_expected(
        subject.op, first, case, None, None,
        conditioning=oracle.Conditioning.NONE, diagnose=False,
    )  # fmt: skip
    before = _outputs(subject, inputs, first, expected.torch_outputs)
    for which in (0, 1):
        values, stays = _change_halves(subject, first, others, expected.values, which)
        if cpu_s() > deadline:
            return True
        after = _outputs(subject, inputs, values, expected.torch_outputs)
        for a, b, allowed, stay in zip(after, before, expected.allowed, stays, strict=True):
            if bool((((a - b).abs() > CLEAR * allowed.cpu()) & stay.cpu()).any()):
                return True
    return False


def _outputs(
    subject: Subject, inputs: CaseInputs, values: tuple[Any, ...], like: tuple[Any, ...]
) -> list[torch.Tensor]:
    """Return the version's outputs on these values, float64 on the CPU."""
    call = call_guarded(subject, write_values(inputs, values), like)
    return [t.double().cpu() for t in call.outputs]


def _change_halves(
    subject: Subject,
    first: tuple[Any, ...],
    others: tuple[Any, ...],
    expected: Sequence[torch.Tensor],
    which: int,
) -> tuple[tuple[Any, ...], list[torch.Tensor]]:
    """Return the inputs with half of the indices of each dimension from the others.

    Dimensions are left out of which the halves reach every element. The indices are random, so that
    those of any other block or stride are among them.

    Args:
        subject: the version, for its op.
        first: inputs.
        others: inputs of the same shapes.
        expected: outputs for the first ones.
        which: of the two halves.

    Returns:
        The inputs, and for each output a mask of the elements that have to stay.
    """
    draw = torch.Generator().manual_seed(1)
    values = first
    stays = [torch.ones_like(e, dtype=torch.bool) for e in expected]
    for i, (x, other) in enumerate(zip(first, others, strict=True)):
        if not isinstance(x, torch.Tensor) or i in subject.op.structured:
            continue
        for dim in (d for d in range(x.dim()) if x.shape[d] > 1):
            half = torch.randperm(x.shape[dim], generator=draw).chunk(2)[which].to(x.device)
            new = other.double().index_select(dim, half)
            changed = values[i].double().index_copy(dim, half, new).to(x.dtype)
            candidate = (*values[:i], changed, *values[i + 1 :])
            right = oracle.evaluate(subject.op, oracle.upcast(candidate))[1]
            same = [a == b for a, b in zip(right, expected, strict=True)]
            if all(float(s.double().mean()) >= LEAST_SHARE for s in same):
                values, stays = candidate, same
    return values, stays
