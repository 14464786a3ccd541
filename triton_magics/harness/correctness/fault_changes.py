"""List the changes of a reference that stand for faults, and evaluate one."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from triton_magics import operators
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.harness.correctness.input_changes import (
    changes_of_alike_inputs,
    changes_of_inputs,
    changes_past_the_end,
)
from triton_magics.harness.correctness.operation_changes import changes_of
from triton_magics.harness.correctness.place_changes import (
    changes_beyond_limits,
    changes_of_outputs,
    changes_of_strides,
)
from triton_magics.harness.correctness.reduction_changes import averages_last
from triton_magics.harness.correctness.reference_changes import Change, Inputs
from triton_magics.harness.correctness.reference_trace import (
    MAX_OPERATIONS,
    evaluate_changed,
    trace_reference,
)
from triton_magics.harness.correctness.use_changes import changes_of_input_uses


def iter_changes(op: operators.Op, sample: FaultSample, inputs: Inputs) -> Iterator[Change]:
    """Yield all changes."""
    operations = trace_reference(op, inputs)
    names = op.input_names(len(inputs))
    declared = {name: tuple(values) for name, values in op.scalars.items()}
    changes = [*changes_of_inputs(inputs, names, declared)]
    changes += changes_of_alike_inputs(inputs, names)
    averaged = {o.args[0].shape for o in operations if averages_last(o)}
    changes += changes_past_the_end(inputs, names, sample.expected[0], averaged=averaged)
    if len(operations) <= MAX_OPERATIONS:
        changes += changes_of(operations)
        changes += changes_of_input_uses(operations, inputs, names)
        if operations:
            changes += changes_of_outputs(sample.expected[0], inputs)
    changes += changes_of_strides(inputs, names, sample.memory)
    changes += changes_beyond_limits(inputs, names, sample.got[0], sample.expected[0])
    yield from changes


def evaluate_change(
    op: operators.Op, inputs: Inputs, change: Change, amount: float
) -> tuple[torch.Tensor, ...]:
    """Return the outputs of the changed reference, in float64."""
    own = change.inputs(inputs, amount) if change.inputs else inputs
    outputs = evaluate_changed(op, own, change.at, change.operation(amount))
    if change.outputs:
        outputs = tuple(change.outputs(o) for o in outputs)
    return tuple(o.double() for o in outputs)
