"""Oracle: the expected outputs in float64, and the allowed error of each element.

The allowed error is the largest of three: the rtol of the dtype (`STATED_RTOL`) at the output's own
scale; a small multiple of torch's own error on the same case; a small multiple of the change of the
output when the inputs and the results inside change by one unit in the last place, or when sums are
added in float32, in several orders. The same reference computed one precision step lower must fail,
or the case does not count as evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, islice
from typing import Any

import torch

from triton_magics import exception_text, operators
from triton_magics.harness.correctness import call_record
from triton_magics.harness.correctness.accumulated_sums import (
    N_ORDERS,
    N_ORDERS_OF_MANY,
    AccumulatedSums,
    EverySecond,
    Float8Products,
    TruncatedProducts,
)
from triton_magics.harness.correctness.fused_attention import FusedAttention
from triton_magics.harness.correctness.judgement import (
    Judgement,
    finite_part,
    is_correct,
    judge,
)
from triton_magics.harness.correctness.perturbed_arithmetic import (
    ExpandedArithmetic,
    PerturbedArithmetic,
    RandomSigns,
)
from triton_magics.harness.correctness.tolerance import (
    CONDITIONING_FACTOR,
    STATED_RTOL,
    accumulation_unit,
    apply_own_tolerance,
    calibrate,
    is_floating,
    lower_precision,
    perturb_inputs,
)
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, Tolerance

# Tensor cores add 16 terms of a half type; each loses bits, as it is aligned to the largest. A
# float32 product is several of TF32 or float16 there. It may have the whole error of 8 terms, not
# four times that, with which one TF32 product of 20,011 terms passed. On an H200 two float16 for
# each number had 2.6e-5 of the output's RMS at 8,209 terms, 8 terms at once make 6e-5, TF32 5e-4.
TERMS_OF_A_TRUNCATION, TERMS_OF_TF32 = 4, 8
# Evaluations of each stage: perturbations, and sums in other orders; at last all others.
STAGES = ((4, 2), (6, 6))
PERTURBATIONS = 17  # with 2, a correct attention failed in one of five cases with large scores
# A smaller error may change the output more: equal elements have a variance of 0 and their mean an
# error, whose square adds to eps. Each is taken for all elements alike, and for each element.
PARTS_OF_A_UNIT = (0.5, 0.5, 0.25, 0.25, 0.125, 0.125)


class Conditioning(Enum):
    """Choice whether a tolerance is widened by the errors of a kernel's arithmetic."""

    NONE = auto()
    ALL = auto()


@dataclass(frozen=True)
class TorchOutputs:
    """Torch's own outputs on a case.

    Attributes:
        outputs: every output, including the inputs that a call changes.
        returned: the outputs that the reference returns.
        returns_tensor: True if the reference returns a tensor, False for a tuple.
    """

    outputs: tuple[torch.Tensor, ...]
    returned: tuple[torch.Tensor, ...]
    returns_tensor: bool


@dataclass(frozen=True)
class ExpectedOutputs:
    """Expected outputs of a case, their allowed errors, and torch's own outputs.

    Floating values are in float64; integers keep their dtype.
    """

    values: tuple[torch.Tensor, ...]
    allowed: tuple[torch.Tensor, ...]
    torch_outputs: tuple[torch.Tensor, ...]
    tolerance: Tolerance
    calibrated: bool

    def judge_outputs(self, outputs: tuple[Any, ...]) -> list[Judgement]:
        """Judge each output."""
        triples = zip(outputs, self.values, self.allowed, strict=True)
        return [judge(*each) for each in triples]


def all_outputs(op: operators.Op, value: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the outputs of a call, then the inputs that the op declares in MUTATES."""
    return call_record.all_outputs(value, inputs, op.mutates)


def evaluate(
    op: operators.Op, inputs: tuple[Any, ...], *, with_exact: bool = True
) -> tuple[Any, tuple[Any, ...]]:
    """Return the value of the reference, and all its outputs; `inputs` are not changed.

    Args:
        op: the op.
        inputs: of the call.
        with_exact: on float64 inputs, call the op's `exact` where it has one.

    Raises:
        UserFault: it raises, or returns something other than tensors on the inputs' device.
        torch.OutOfMemoryError: its inputs are too large for this GPU.
    """
    own = own_inputs(op, inputs)
    doubled = any(isinstance(x, torch.Tensor) and x.dtype is torch.float64 for x in own)
    function = op.exact if op.exact and doubled and with_exact else op.reference
    try:
        with _no_cudnn_attention():
            value = function(*own)
    except torch.OutOfMemoryError:
        raise
    except BaseException as error:  # exit() too: the code is the user's own
        arguments = ", ".join(_describe_input(x) for x in inputs)
        raise UserFault(
            f"{op.name}: the reference raised {exception_text.one_line(error)}; its inputs were "
            f"{arguments}. It must take every dtype that the op declares, and float64, in which "
            "the expected output is computed"
        ) from error
    outputs = all_outputs(op, value, own)
    _check_outputs(op, outputs, own)
    return value, outputs


@contextmanager
def _no_cudnn_attention() -> Iterator[None]:
    """Let torch compute attention by its own kernels: cuDNN prepares for each new shape.

    Cases seldom share a shape. A timing of torch has cuDNN, as its default is.
    """
    was_enabled = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was_enabled)


def own_inputs(op: operators.Op, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs of one call, with copies of those that it changes."""
    mutates = [i in op.mutates and isinstance(x, torch.Tensor) for i, x in enumerate(inputs)]
    return tuple(x.clone() if changes else x for x, changes in zip(inputs, mutates, strict=True))


def _check_outputs(op: operators.Op, outputs: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
    device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), None)
    for output in outputs:
        if not isinstance(output, torch.Tensor):
            kind = "nothing" if output is None else f"a {type(output).__name__}"
            hint = (
                "; an op that changes its inputs declares MUTATES = (0,)" if output is None else ""
            )
            raise UserFault(
                f"{op.name}: the reference returns {kind}; it must return tensors{hint}"
            )
        if device is not None and output.device != device:
            raise UserFault(
                f"{op.name}: the reference returns a tensor on {output.device}, its inputs are on "
                f"{device}"
            )


def _describe_input(x: Any) -> str:
    """Return a label such as `float64 [7, 13]`."""
    if not isinstance(x, torch.Tensor):
        return repr(x)
    return f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"


def compute_torch_outputs(op: operators.Op, inputs: tuple[Any, ...]) -> TorchOutputs:
    """Return torch's own outputs for pristine inputs.

    Raises:
        UserFault: the reference fails; this is the op's fault, not the version's.
    """
    with torch.no_grad():
        value, outputs = evaluate(op, inputs)
    returned = outputs[: len(outputs) - len(op.mutates)]
    return TorchOutputs(outputs, returned, returns_tensor=not isinstance(value, tuple | list))


def compute_expected(
    op: operators.Op,
    inputs: tuple[Any, ...],
    case: Case,
    rtol: float | None,
    atol: float | None,
    *,
    conditioning: Conditioning = Conditioning.ALL,
    diagnose: bool = True,
) -> ExpectedOutputs:
    """Return the oracle for pristine inputs, with its tolerance.

    Args:
        op: the op.
        inputs: the result of `make_pristine`.
        case: the case; its dtype sets the tolerance.
        rtol: the user's relative tolerance, instead of the calibrated one.
        atol: the user's absolute tolerance.
        conditioning: widen the tolerance by the change of the output under rounding errors; this
            takes `PERTURBATIONS` and `N_ORDERS` more evaluations.
        diagnose: find the origin of the tolerance, and whether a lower precision fails; a verdict
            on an output needs neither.

    Raises:
        UserFault: the reference fails; this is the op's fault, not the version's.
    """
    expected = begin_expected(op, inputs, case, rtol, atol, diagnose=diagnose)
    if conditioning is Conditioning.NONE:
        return expected.first
    *_, widest = expected.stages()
    return widest


@dataclass(frozen=True)
class StagedOracle:
    """The oracle of a case, with the tolerance that an output needs.

    The errors of a kernel's arithmetic take some thirty evaluations of the reference, and a right
    output seldom needs them all.

    Attributes:
        first: without them.
        wider: with more and more of them; each is computed when it is asked for.
    """

    first: ExpectedOutputs
    wider: Iterator[ExpectedOutputs]

    def stages(
        self, report: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> Iterator[ExpectedOutputs]:
        """Yield each stage, once.

        Args:
            report: tells that a later stage is computed.
        """
        yield self.first
        while True:
            with report():
                wider = next(self.wider, None)
            if wider is None:
                return
            yield wider


def begin_expected(
    op: operators.Op,
    inputs: tuple[Any, ...],
    case: Case,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    diagnose: bool = False,
    torch_outputs: tuple[torch.Tensor, ...] | None = None,
    torch_errors: bool = True,
) -> StagedOracle:
    """Return the oracle of a case without the errors of a kernel's arithmetic, and how to go on.

    The arguments are those of `compute_expected`; `torch_outputs` are torch's own, if known, and
    `torch_errors` says that their errors are allowed, too.

    Raises:
        UserFault: the reference fails; this is the op's fault, not the version's.
    """
    plain = _PlainOracle.evaluate(
        op, inputs, case, torch_outputs, diagnose=diagnose, torch_errors=torch_errors
    )
    own = rtol, atol
    steps = _iter_steps(op, inputs, plain.values, case.dtype)
    return StagedOracle(plain.expected(None, *own), (plain.expected(step, *own) for step in steps))


def iter_expected(
    op: operators.Op, inputs: tuple[Any, ...], case: Case, **options: Any
) -> Iterator[ExpectedOutputs]:
    """Yield the oracle with a wider and wider tolerance; the arguments are of `begin_expected`."""
    return begin_expected(op, inputs, case, **options).stages()


@dataclass(frozen=True)
class _PlainOracle:
    """The values that each stage of the oracle of a case begins with.

    Attributes:
        lower: the outputs of the reference in a lower precision; None: not asked for.
        torch_errors: torch's own errors are allowed.
    """

    op: operators.Op
    case: Case
    values: tuple[torch.Tensor, ...]
    torch_outputs: tuple[torch.Tensor, ...]
    lower: tuple[torch.Tensor, ...] | None
    torch_errors: bool

    @classmethod
    @torch.no_grad()
    def evaluate(
        cls,
        op: operators.Op,
        inputs: tuple[Any, ...],
        case: Case,
        torch_outputs: tuple[torch.Tensor, ...] | None,
        *,
        diagnose: bool,
        torch_errors: bool,
    ) -> _PlainOracle:
        """Evaluate the reference in the case's dtype, in float64, and one precision step lower."""
        torch_outputs = evaluate(op, inputs)[1] if torch_outputs is None else torch_outputs
        values = double_floats(evaluate(op, upcast(inputs))[1])
        lower = evaluate(op, lower_precision(inputs, case.dtype))[1] if diagnose else None
        return cls(op, case, values, torch_outputs, lower, torch_errors)

    @torch.no_grad()
    def expected(
        self, steps: list[torch.Tensor] | None, rtol: float | None, atol: float | None
    ) -> ExpectedOutputs:
        """Return the oracle, with outputs that change by these steps under rounding errors."""
        stated = STATED_RTOL.get(self.case.dtype, STATED_RTOL["float32"])
        allowed, tolerance = calibrate(
            self.values,
            self.torch_outputs,
            steps,
            stated,
            by_row=self.op.op_class != "elementwise",
            diagnose=self.lower is not None,
            torch_errors=self.torch_errors,
        )
        if rtol is not None or atol is not None:
            allowed, tolerance = apply_own_tolerance(rtol, atol, self.values, allowed, stated)
        return ExpectedOutputs(
            values=self.values,
            allowed=allowed,
            torch_outputs=self.torch_outputs,
            tolerance=tolerance,
            calibrated=not all(map(is_correct, self.lower or (), self.values, allowed)),
        )


def double_floats(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Return the outputs with floating tensors in float64."""
    return tuple(t.double() if is_floating(t) else t for t in outputs)


def upcast(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs with floating tensors in float64."""
    return tuple(x.double() if is_floating(x) else x for x in inputs)


def _iter_steps(
    op: operators.Op, inputs: tuple[Any, ...], values: tuple[torch.Tensor, ...], dtype: str
) -> Iterator[list[torch.Tensor]]:
    """Yield the largest change of each output element under the errors of a kernel's arithmetic.

    Each stage has more evaluations: errors may cancel in one by chance.
    """
    perturbed = _perturb(op, inputs, dtype, [1.0] * PERTURBATIONS + [*PARTS_OF_A_UNIT])
    accumulated = _accumulate(op, inputs, accumulation_unit(dtype))
    steps = [torch.zeros((), dtype=torch.float64, device=v.device) for v in values]
    for n_perturbed, n_accumulated in (*STAGES, (None, None)):
        moved = chain(islice(perturbed, n_perturbed), islice(accumulated, n_accumulated))
        steps = _widen(steps, moved, values)
        yield steps


@torch.no_grad()
def _widen(
    steps: Sequence[torch.Tensor],
    moved: Iterator[tuple[torch.Tensor, ...]],
    values: tuple[torch.Tensor, ...],
) -> list[torch.Tensor]:
    """Return the larger ones of these changes and those of the moved outputs."""
    widened = [*steps]
    for outputs in moved:
        for i, (there, here) in enumerate(zip(outputs, values, strict=True)):
            change = finite_part(there.double() - here.double()).abs()
            widened[i] = torch.maximum(widened[i], change)
    return widened


def _perturb(
    op: operators.Op, inputs: tuple[Any, ...], dtype: str, sizes: Sequence[float]
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the outputs with the inputs and every intermediate result moved by each part of a unit.

    Of half types, tensor cores multiply intermediate results, too, in the inputs' dtype.
    """
    whole = accumulation_unit(dtype)
    own: torch.dtype = getattr(torch, dtype)
    factors = own if own.is_floating_point and own.itemsize == 2 else None
    is_float32 = whole == torch.finfo(torch.float32).eps
    smallest = torch.finfo(torch.float32).smallest_normal if is_float32 else 0.0
    for which, size in enumerate(sizes):
        unit, signs = whole * size, RandomSigns(which)
        changed = perturb_inputs(upcast(inputs), which, unit, signs)
        coherent = which % 2 == 0
        arithmetic = PerturbedArithmetic(
            unit, signs, coherent=coherent, factors=factors, flush_below=smallest * coherent
        )
        yield _evaluate_in(arithmetic, op, changed)


def _accumulate(
    op: operators.Op, inputs: tuple[Any, ...], unit: float
) -> Iterator[tuple[torch.Tensor, ...]]:
    """Yield the outputs with sums added in float32: forwards, backwards, as tensor cores do.

    Then they are added in random orders.
    """
    if unit != torch.finfo(torch.float32).eps:
        return
    has_products = False
    for which in range(N_ORDERS):
        if which == N_ORDERS_OF_MANY and has_products:
            for arithmetic in _tensor_cores([x.itemsize for x in inputs if is_floating(x)]):
                yield _evaluate_in(arithmetic, op, upcast(inputs))
        sums = AccumulatedSums(which)
        moved = _evaluate_in(sums, op, upcast(inputs))
        if not sums.n_added:
            break
        has_products |= sums.n_products > 0
        yield moved


def _evaluate_in(
    arithmetic: ExpandedArithmetic, op: operators.Op, inputs: tuple[Any, ...]
) -> tuple[torch.Tensor, ...]:
    """Return the outputs of the reference in an arithmetic, with attention as fused kernels."""
    with arithmetic, FusedAttention():
        return evaluate(op, inputs)[1]


def _tensor_cores(sizes: Sequence[int]) -> Iterator[TruncatedProducts]:
    """Yield how tensor cores may add, by the bytes of the inputs' elements."""
    is_half = all(size <= 2 for size in sizes)
    group = TERMS_OF_A_TRUNCATION if is_half else TERMS_OF_TF32
    share = 1.0 if is_half else 1 / CONDITIONING_FACTOR
    yield from (TruncatedProducts(group, every_second=each, share=share) for each in EverySecond)
    if sizes.count(1) >= 2:  # both factors of a product may be in float8
        yield Float8Products()
