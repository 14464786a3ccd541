"""Check whether a version is right where torch's default dtype is another one.

Models are loaded under `torch.set_default_dtype(torch.bfloat16)`. A workspace that is made without
a dtype has that one then, and sums in it are rounded. Only a version that makes such a tensor is
called again for this, since a further call changes what it keeps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from triton_magics.harness.correctness.call_record import CallRecord
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.comparison import CaseOracle, judge_first
from triton_magics.harness.correctness.computed_by import (
    MIN_HOST_READS,
    TracedCall,
    copy_outputs,
    equals_earlier,
)
from triton_magics.harness.correctness.oracle import TorchOutputs
from triton_magics.harness.correctness.subject import Subject
from triton_magics.model import Case, CaseStatus


def needs_default_dtype(
    subject: Subject,
    case: Case,
    inputs: CaseInputs,
    call: CallRecord,
    torch_outputs: TorchOutputs,
    *,
    first: tuple[Any, ...],
) -> bool:
    """Return whether a call is wrong under another default dtype, once for each route and dtype.

    Args:
        subject: the version.
        case: of the call.
        inputs: of the case.
        call: an earlier call on them, which was right.
        torch_outputs: of the case.
        first: copies of that call's outputs.
    """
    route = ("default dtype", case.dtype, *call.launches.names, "and", *call.launches.torch_ops)
    if subject.runtime.computes_in_torch or not call.takes_default_dtype:
        return False
    if route in subject.checked_routes:
        return False
    if inputs.largest <= MIN_HOST_READS:  # a larger case has the route too, and more to round
        return False
    subject.checked_routes.add(route)
    traced = TracedCall(subject, inputs, first)
    try:
        other = "float16" if case.dtype == "bfloat16" else "bfloat16"
        changed = traced.run(default_dtype=other)
        if changed is None:
            return True
        if equals_earlier(traced, first, changed) or subject.op.check is not None:
            return False
        return not _is_right(subject, case, inputs, changed, torch_outputs)
    finally:
        inputs.reset()


def _is_right(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, outputs: TorchOutputs
) -> bool:
    oracle = CaseOracle(subject, case, inputs, outputs)
    copied = replace(call, outputs=copy_outputs(call))
    return judge_first(oracle, copied)[1].status is CaseStatus.PASSED
