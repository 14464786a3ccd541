"""Judge who computed a case, by the flow of data: the version's kernels, torch, or other code.

Torch contributed with an operation if the output changes when the operation's result is poisoned.
The kernels contributed if the output changes when their launches are suppressed. Other code
contributed if the output changes when only launches and torch operations see true values.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from triton_magics import operators
from triton_magics.harness import layouts
from triton_magics.harness.correctness.call_record import CallOptions, CallRecord, VersionRaised
from triton_magics.harness.correctness.case_inputs import CaseInputs, is_bitwise_equal
from triton_magics.harness.correctness.output_checks import (
    check_unfinished_work,
    failed_case,
)
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.correctness.torch_operations import Operation, Site
from triton_magics.harness.load import error_at_line
from triton_magics.model import MAX_TORCH_SHARE, Case, CaseResult, CaseStatus, TorchWork

MAX_SITES = 12  # torch operations that are poisoned one by one; the others count as needed
MIN_HOST_READS = 64  # elements that the host may read in any case
SPREAD_FACTOR = 10.0  # of the difference between two equal calls
MORE_CALLS = 8  # that equal the first ones, before other code is blamed for a difference
MIN_SPREAD = 16  # units in the last place of the largest element: two calls may agree by chance


@dataclass(frozen=True)
class TracedCall:
    """A call of the version on the inputs of a case, to repeat with changes in its data flow.

    Attributes:
        like: copies of the outputs of a call, those in the op's MUTATES last.
    """

    subject: Subject
    inputs: CaseInputs
    like: tuple[Any, ...]

    def run(self, **options: Any) -> CallRecord | None:
        """Return the call with copies of its outputs; None if it raises, as it may without data."""
        self.inputs.reset()
        changes = CallOptions(fix_seed=True, **options)
        try:
            return self.subject.call(self.inputs.arguments, self.like, options=changes)
        except VersionRaised:
            return None

    def outputs(self, **options: Any) -> tuple[Any, ...] | None:
        """Return copies of the outputs; None if the call raises."""
        call = self.run(**options)
        return None if call is None else copy_outputs(call)

    def restore_changed_inputs(self) -> None:
        """Write the outputs of the earlier call into the inputs that the op changes."""
        mutates = self.inputs.mutates
        changed = self.like[len(self.like) - len(mutates) :]
        for i, output in zip(mutates, changed, strict=True):
            layouts.write(self.inputs.arguments[i], output)

    @cached_property
    def baseline(self) -> Baseline | None:
        """Return the outputs without changes; None if the call raises."""
        first, second = self.outputs(), self.outputs()
        if first is None or second is None:
            return None
        return Baseline(first, tuple(map(_largest_difference, first, second)))


@dataclass(frozen=True)
class Baseline:
    """The outputs of an unchanged call, and how far those of another one lie from them."""

    outputs: tuple[Any, ...]
    spreads: tuple[float, ...]

    def is_equal(self, outputs: tuple[Any, ...] | None) -> bool:
        """Return whether outputs equal these, within the spread of equal calls.

        Sums by atomics differ in their last bits, but two of them are often equal. So a few units
        in the last place count as equal in any case.
        """
        if outputs is None or len(outputs) != len(self.outputs):
            return False
        differences = map(_largest_difference, self.outputs, outputs)
        limits = (
            max(SPREAD_FACTOR * spread, MIN_SPREAD * _last_place(output))
            for output, spread in zip(self.outputs, self.spreads, strict=True)
        )
        return all(map(operator.le, differences, limits))


def copy_outputs(call: CallRecord) -> tuple[Any, ...]:
    """Copy a call's outputs, because another call may write into the same memory."""
    return tuple(o.clone() if isinstance(o, torch.Tensor) else o for o in call.outputs)


# ------------------------------------------------------------------------------------- torch


def check_torch_work(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord
) -> tuple[CaseResult | None, tuple[TorchWork, ...]]:
    """Check that the output depends on torch operations for a small share of the work only.

    Returns:
        the failed case, if it is more, and the operations that the output depends on.
    """
    if not call.flow.operations or subject.runtime.computes_in_torch:
        return None, ()
    first = copy_outputs(call)
    shares = _shares(subject, case, inputs, call)
    needed = _needed_sites(TracedCall(subject, inputs, first), shares)
    work = tuple(_torch_work(subject, site, share) for site, share in needed.items())
    if sum(needed.values()) <= MAX_TORCH_SHARE:
        return None, work
    return _refuse_torch(subject, case, needed), work


def _shares(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord
) -> dict[Site, float]:
    """Return the share of the op's work of each site, the largest first.

    At a shape that is no benchmark size an operation counts as at the smallest size, if it runs
    there and its share is smaller: with rows of one element, any last step is all of the work.
    """
    shares = _work_shares(subject, inputs.pristine, call.flow.operations)
    if sum(shares.values()) > MAX_TORCH_SHARE and case.size is None:
        usual = _shares_at_smallest_size(subject, case)
        shares = {site: min(share, usual.get(site, share)) for site, share in shares.items()}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _work_shares(
    subject: Subject, pristine: tuple[Any, ...], operations: Sequence[Operation]
) -> dict[Site, float]:
    work: dict[Site, float] = defaultdict(float)
    for operation in operations:
        work[operation.site] += operation.work
    total = _op_work(subject, pristine) if work else 1.0
    return {site: min(amount / total, 1.0) for site, amount in work.items()}


def _op_work(subject: Subject, pristine: tuple[Any, ...]) -> float:
    """Return the operations that the op needs: its `flops`, else one for each input element."""
    elements = sum(x.numel() for x in pristine if isinstance(x, torch.Tensor))
    flops = subject.op.flops(*pristine) if subject.op.flops else elements
    return float(max(flops, 1))


def _shares_at_smallest_size(subject: Subject, case: Case) -> dict[Site, float]:
    """Return the shares at the smallest benchmark size."""
    if case.dtype not in subject.size_shares:
        size, shape = next(iter(subject.op.sizes.items()))
        usual = case.evolve(shape=shape, regime="normal", size=size)
        inputs = subject.make_inputs(usual)
        shares = _work_shares(subject, inputs.pristine, _trace_operations(subject, inputs))
        subject.size_shares[case.dtype] = shares
    return subject.size_shares[case.dtype]


def _trace_operations(subject: Subject, inputs: CaseInputs) -> Sequence[Operation]:
    """Return torch's operations in a call that leaves no unset memory in the version's process.

    A version may keep what a kernel wrote for later calls of the same shape. So the kernels run, or
    the call is one of a fork, which a process with a CUDA context does not allow.
    """
    if subject.is_interpreted:
        return subject.calls.dry_run(inputs.arguments).operations
    call = TracedCall(subject, inputs, ()).run(trace=True)
    return call.flow.operations if call else ()


def _needed_sites(traced: TracedCall, shares: dict[Site, float]) -> dict[Site, float]:
    """Return the shares of the sites that the output depends on.

    It may depend on a site at some shapes only. So one on which no output depended so far is tried
    again where torch computes much.
    """
    facts, is_much = traced.subject.needed_sites, sum(shares.values()) > MAX_TORCH_SHARE
    tried = [site for site in shares if site not in facts or (is_much and not facts[site])]
    for site in tried[:MAX_SITES]:
        facts[site] = _depends_on(traced, site)
    traced.restore_changed_inputs()
    return {site: share for site, share in shares.items() if facts.get(site, True)}


def _depends_on(traced: TracedCall, site: Site) -> bool:
    """Return whether the output changes when the results of a torch operation are poisoned.

    A result that can't be changed without danger counts as needed.
    """
    call = traced.run(poison=site)
    return (
        call is None or not call.flow.is_poisoned or not equals_earlier(traced, traced.like, call)
    )


def _torch_work(subject: Subject, site: Site, share: float) -> TorchWork:
    line = error_at_line("", "", site.line, subject.ref).cell_line
    return TorchWork(operation=site.operation, line=line, share=share)


def _refuse_torch(subject: Subject, case: Case, needed: dict[Site, float]) -> CaseResult:
    title = subject.runtime.title
    names = ", ".join(dict.fromkeys(site.operation for site in needed))
    message = (
        f"torch computes {_percent(min(sum(needed.values()), 1.0))} of the work ({names}); the "
        f"limit is {_percent(MAX_TORCH_SHARE)}. Compute it in a {title} kernel"
    )
    error = error_at_line("TorchWork", message, next(iter(needed)).line, subject.ref)
    place = f"cell line {error.cell_line}: " if error.cell_line else ""
    return failed_case(case, CaseStatus.NOT_TRITON, f"{place}{message}", error=error)


def _percent(share: float) -> str:
    """Return `14 %`, `1.4 %`, `1 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else "100 %"


# ----------------------------------------------------------------------------------- launches


def _needs_check(
    subject: Subject, check: str, case: Case, inputs: CaseInputs, *, call: CallRecord
) -> bool:
    """Return whether a route was not checked: the launches and torch operations of a call.

    A version may compute otherwise for some dtypes or some shapes, so each dtype and each shape of
    a route counts. A case with few elements, or with a trivial answer, is checked and leaves both
    unchecked.
    """
    if subject.runtime.computes_in_torch:
        return False
    launches = call.launches
    route = (check, *launches.names, "and", *launches.torch_ops)
    routes = {(case.dtype, *route), ("x".join(map(str, case.shape)), *route)}
    if routes <= subject.checked_routes:
        return False
    if inputs.largest > MIN_HOST_READS and not needs_no_launch(call.outputs, inputs.pristine):
        subject.checked_routes.update(routes)
    return True


def needs_no_launch(outputs: tuple[Any, ...], pristine: tuple[Any, ...]) -> bool:
    """Return whether every output is constant or equals an input: nothing had to be computed."""
    return all(_is_constant(output) or equals_input(output, pristine) for output in outputs)


def _is_constant(output: torch.Tensor) -> bool:
    return output.numel() == 0 or is_bitwise_equal(output, output.flatten()[0].expand(output.shape))


def equals_input(value: Any, pristine: tuple[Any, ...]) -> bool:
    """Return whether an output equals one of the inputs bit for bit."""
    tensors = (x for x in pristine if isinstance(x, torch.Tensor))
    return isinstance(value, torch.Tensor) and any(
        x.shape == value.shape and x.dtype == value.dtype and is_bitwise_equal(x, value)
        for x in tensors
    )


def lacks_launch(subject: Subject, inputs: CaseInputs, call: CallRecord) -> bool:
    """Return whether no kernel was launched, although the answer had to be computed."""
    if call.launches.names or subject.runtime.computes_in_torch:
        return False
    return not needs_no_launch(call.outputs, inputs.beside_arguments.pristine)


def check_launches(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord
) -> CaseResult | None:
    """Check that the output depends on the launches, once for each route.

    The inputs are new, so that an output cached by an earlier call does not count as torch's.
    """
    if not _needs_check(subject, "launches", case, inputs, call=call):
        return None
    fresh = subject.make_inputs(_with_other_tensors(subject.op, case, inputs))
    outputs = _outputs_without_launches(TracedCall(subject, fresh, call.outputs))
    if outputs is None or needs_no_launch(outputs, fresh.pristine):
        return None
    return failed_case(
        case,
        CaseStatus.NOT_TRITON,
        f"the output is the same with every {subject.runtime.title} launch suppressed: no kernel "
        "computes it",
    )


def _with_other_tensors(op: operators.Op, case: Case, inputs: CaseInputs) -> Case:
    """Return the case with new tensors and its own scalars.

    A version may keep what a kernel wrote for a shape and scalars. Of these one has run.
    """
    named = zip(op.input_names(len(inputs.pristine)), inputs.pristine, strict=True)
    scalars = tuple((name, value) for name, value in named if name in op.scalars)
    return case.evolve(seed=case.seed ^ 0xA0, scalars=scalars)


def _outputs_without_launches(traced: TracedCall) -> tuple[Any, ...] | None:
    """Return the outputs if they are the same with every launch suppressed, else None.

    Memory that the version does not set is NaN meanwhile. An output with NaN needs no comparison.
    """
    without = traced.outputs(suppress=True)
    if without is None or any(_has_nan(output) for output in without):
        return None
    complete = traced.run()
    if complete is None or not complete.launches.names:
        return None  # it answers from a cache
    return without if all(map(_is_same, complete.outputs, without)) else None


# --------------------------------------------------------------------------------- other code


def check_other_code(
    subject: Subject, case: Case, inputs: CaseInputs, call: CallRecord, *, first: tuple[Any, ...]
) -> CaseResult | None:
    """Check that data passes through launches and torch operations of the calling thread only.

    It is checked once for each route.

    Args:
        subject: the version.
        case: for the result.
        inputs: of the case.
        call: an earlier call on them.
        first: copies of its outputs.
    """
    if not _needs_check(subject, "other code", case, inputs, call=call):
        return None
    traced = TracedCall(subject, inputs, first)
    elements = max(MIN_HOST_READS, int(MAX_TORCH_SHARE * inputs.largest))
    try:
        for _ in range(2):  # its last bits may depend on the call before: then on one like it
            masked = traced.run(hide_from_host=elements)
            if masked is None:
                break
            if failed := check_unfinished_work(case, masked):
                return failed
            if equals_earlier(traced, first, masked):
                return None
        if masked and _is_within_spread(traced, first, masked):
            return None
    finally:
        inputs.reset()
    threads = masked.flow.threads if masked else ()
    where = f", perhaps in the thread {threads[0]}," if threads else ""
    return failed_case(
        case,
        CaseStatus.NOT_TRITON,
        f"code beside kernels and torch{where} computes part of the output: NumPy, a thread, an "
        f"extension or a CUDA graph. Compute it in a {subject.runtime.title} kernel",
    )


def equals_earlier(traced: TracedCall, first: tuple[Any, ...], changed: CallRecord) -> bool:
    """Return whether a call with a changed flow gave the outputs of an earlier one."""
    outputs = copy_outputs(changed)
    if len(first) == len(outputs) and all(map(_is_same, first, outputs)):
        return True
    return traced.baseline is not None and traced.baseline.is_equal(outputs)


def _is_within_spread(traced: TracedCall, first: tuple[Any, ...], changed: CallRecord) -> bool:
    """Return whether unchanged calls differ as much as the changed one does, as in a race.

    Two of them may agree by chance.
    """
    spreads = [0.0] * len(first)
    for _ in range(MORE_CALLS):
        outputs = traced.outputs()
        if outputs is None or len(outputs) != len(first):
            return False
        spreads = [*map(max, spreads, map(_largest_difference, first, outputs))]
    return Baseline(first, tuple(spreads)).is_equal(copy_outputs(changed))


# --------------------------------------------------------------------------------- comparison


def _has_nan(output: Any) -> bool:
    is_float = isinstance(output, torch.Tensor) and output.is_floating_point()
    return is_float and bool(output.isnan().any())


def _is_same(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return a is b
    return is_bitwise_equal(a, b)


def _last_place(output: Any) -> float:
    """Return the unit in the last place of the largest finite element; 0 of integers and others."""
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        return 0.0
    sizes = output.double().abs()
    largest = sizes.masked_fill(~sizes.isfinite(), 0.0).amax() if output.numel() else 0.0
    return float(largest) * torch.finfo(output.dtype).eps


def _largest_difference(a: Any, b: Any) -> float:
    """Return the largest difference of two outputs; infinite if they differ in form or in NaN."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return 0.0 if a is b else float("inf")
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return float("inf")
    if is_bitwise_equal(a, b):
        return 0.0
    x, y = a.double(), b.double()
    is_finite = x.isfinite() & y.isfinite()
    if not bool((is_finite | (x == y) | (x.isnan() & y.isnan())).all()):
        return float("inf")
    return float((x - y).masked_fill(~is_finite, 0.0).abs().max())
