"""The right answer in float64, and how far from it an output may be.

`allowed` is the largest of three: what the spec states for the dtype and the op's class, at the
output's own scale; a small multiple of torch's own error on the same case; a small multiple of how
far the answer itself moves when the inputs move by one unit in the last place. The same reference
computed one precision step lower must fail under it, or the case can't carry a verdict alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics import ops
from triton_magics.model import Case, Tolerance
from triton_magics.worker.load import UserFault

STATED = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
TORCH_ERRORS = 3.0
CONDITIONINGS = 4.0
NUDGES = 17  # with 2, a sound attention was refused in one of five cases with large scores
PIECE = 2**22  # elements that are looked at in float64 at once
_EPS32 = torch.finfo(torch.float32).eps


@dataclass(frozen=True)
class Native:
    """What torch itself gives on a case.

    Attributes:
        outputs: every output, the inputs that a call changes among them.
        returned: those that the reference returns.
        single: whether it returns a tensor, not a tuple of them.
    """

    outputs: tuple[torch.Tensor, ...]
    returned: tuple[torch.Tensor, ...]
    single: bool


@dataclass(frozen=True)
class Expected:
    """What an op's outputs must be: float64 values, allowed errors, and what torch gives."""

    values: tuple[torch.Tensor, ...]
    allowed: tuple[torch.Tensor, ...]
    native: tuple[torch.Tensor, ...]
    tolerance: Tolerance
    calibrated: bool

    def judged(self, outputs: tuple[Any, ...]) -> list[Judgement]:
        """Each of as many outputs, as `judge` says."""
        answers = zip(outputs, self.values, self.allowed, strict=True)
        return [judge(*each) for each in answers]


@dataclass(frozen=True)
class Judgement:
    """An output against its expected value, element by element."""

    error_share: float
    max_abs_error: float
    wrong: torch.Tensor | None

    @property
    def right(self) -> bool:
        """Whether every element is within what is allowed."""
        return self.wrong is None


def outputs_of(value: Any) -> tuple[Any, ...]:
    """An op's outputs as a tuple."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def all_outputs(op: ops.Op, value: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call returned, then the inputs that the op declares as changed."""
    returned = () if value is None and op.mutates else outputs_of(value)
    return (*returned, *(inputs[i] for i in op.mutates))


def evaluate(op: ops.Op, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """What the reference returns, and all its outputs; `inputs` stay as they are.

    Raises:
        UserFault: it raises, or gives something other than tensors where its inputs are.
        torch.OutOfMemoryError: its inputs are too large for this GPU.
    """
    own = tuple(x.clone() if i in op.mutates else x for i, x in enumerate(inputs))
    doubled = any(isinstance(x, torch.Tensor) and x.dtype is torch.float64 for x in own)
    try:
        value = op.exact(*own) if op.exact and doubled else op.reference(*own)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        given = ", ".join(_form(x) for x in inputs)
        raise UserFault(
            f"{op.name}: the reference raised {type(error).__name__}: {error}; its inputs were "
            f"{given}. It must take every dtype that the op declares, and float64, where the right "
            "answer is computed"
        ) from error
    outputs = all_outputs(op, value, own)
    _check_outputs(op, outputs, own)
    return value, outputs


def _check_outputs(op: ops.Op, outputs: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
    device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), None)
    for output in outputs:
        if not isinstance(output, torch.Tensor):
            kind = "nothing" if output is None else f"a {type(output).__name__}"
            hint = "; an op that changes its inputs says MUTATES = (0,)" if output is None else ""
            raise UserFault(
                f"{op.name}: the reference returns {kind}; it must return tensors{hint}"
            )
        if device is not None and output.device != device:
            raise UserFault(
                f"{op.name}: the reference returns a tensor on {output.device}, its inputs are on "
                f"{device}"
            )


def _form(x: Any) -> str:
    """`float64 [7, 13]`."""
    if not isinstance(x, torch.Tensor):
        return repr(x)
    return f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"


def native(op: ops.Op, inputs: tuple[Any, ...]) -> Native:
    """What torch gives for pristine inputs.

    Raises:
        Whatever the reference raises: the op's fault, not the version's.
    """
    with torch.no_grad():
        value, outputs = evaluate(op, inputs)
    returned = outputs[: len(outputs) - len(op.mutates)]
    return Native(outputs, returned, single=not isinstance(value, tuple | list))


def upcast(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Floating tensors in float64; the rest as it is."""
    return tuple(x.double() if _floating(x) else x for x in inputs)


def _floating(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.dtype.is_floating_point


def expect(
    op: ops.Op,
    inputs: tuple[Any, ...],
    case: Case,
    rtol: float | None,
    atol: float | None,
    *,
    conditioned: bool = True,
    told: bool = True,
    known: tuple[torch.Tensor, ...] | None = None,
) -> Expected:
    """The oracle for pristine inputs, with its tolerance.

    Args:
        op: the op.
        inputs: as `make_pristine` gives them.
        case: for its dtype.
        rtol: the user's, in place of the calibrated one.
        atol: likewise, absolute.
        conditioned: whether the conditioning may widen the tolerance; it takes `NUDGES` more
            evaluations in float64, which an output that is right without it does not need.
        told: whether to look at where the tolerance comes from, and whether a lower precision
            fails under it; a verdict on an output needs neither.
        known: torch's own outputs, where they were made already.

    Raises:
        Whatever the reference raises: the op's fault, not the version's.
    """
    with torch.no_grad():
        native = evaluate(op, inputs)[1] if known is None else known
        values = tuple(v.double() for v in evaluate(op, upcast(inputs))[1])
        stated = STATED.get(case.dtype, 0.0)
        if rtol is not None or atol is not None:
            r, a = stated if rtol is None else rtol, 0.0 if atol is None else atol
            allowed = tuple(v.abs() * r + a for v in values)
            typical = max((float(_typical(v)) for v in values), default=1.0)
            loosened = r > stated or a > stated * typical
            tolerance = Tolerance(rtol=r, atol=a, origin="yours", loosened=loosened)
        else:
            allowed, tolerance = _calibrated(
                op, inputs, case, values, native, conditioned=conditioned, told=told
            )
        lower = evaluate(op, _lowered(inputs, case.dtype))[1] if told else ()
    return Expected(
        values=values,
        allowed=allowed,
        native=native,
        tolerance=tolerance,
        calibrated=not all(map(_right, lower, values, allowed)),
    )


def plain_first(
    op: ops.Op,
    inputs: tuple[Any, ...],
    case: Case,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    known: tuple[torch.Tensor, ...] | None = None,
) -> Iterator[Expected]:
    """The oracle that an output is judged by; then, only if one goes on to it, the conditioned one.

    The latter is dear and seldom changes the answer: it is for an output that is wrong without it.
    The arguments are those of `expect`.
    """
    for conditioned in (False, True):
        yield expect(op, inputs, case, rtol, atol, conditioned=conditioned, told=False, known=known)


def _calibrated(
    op: ops.Op,
    inputs: tuple[Any, ...],
    case: Case,
    values: tuple[torch.Tensor, ...],
    native: tuple[torch.Tensor, ...],
    *,
    conditioned: bool,
    told: bool,
) -> tuple[tuple[torch.Tensor, ...], Tolerance]:
    steps = _steps(op, inputs, values) if conditioned else None
    stated = STATED.get(case.dtype, 0.0)
    by_row = op.op_class != "elementwise"
    allowed, shares = [], {"spec": 0.0, "torch's own error": 0.0, "conditioning": 0.0}
    for i, value in enumerate(values):
        scale = _typical(value, by_row=by_row)
        from_spec = value.abs().add_(scale).mul_(stated)
        from_torch = TORCH_ERRORS * _off(native[i], value)
        step = value.new_zeros(()) if steps is None else steps[i]
        from_inputs = CONDITIONINGS * (_worst(step, by_row=True) if by_row else step)
        if told and value.numel():
            parts = (from_spec, from_torch, from_inputs)
            # A part by row has one element a row: its mean is that of all elements.
            means = torch.stack([_mean(part) for part in parts]).tolist()
            shares = {name: max(shares[name], m) for name, m in zip(shares, means, strict=True)}
        widest = torch.maximum(from_torch, from_inputs)
        allowed.append(torch.maximum(from_spec, widest, out=from_spec))
    if not told:
        return tuple(allowed), Tolerance(rtol=stated, atol=0.0, origin="not looked at")
    origin = max(shares, key=shares.__getitem__)
    atol = max((float(_typical(v)) for v in values), default=0.0) * stated
    named = {"spec": f"{stated:g}, from the spec, at the output's own scale"}
    return tuple(allowed), Tolerance(rtol=stated, atol=atol, origin=named.get(origin, origin))


def _finite(x: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)


def _typical(value: torch.Tensor, *, by_row: bool = False) -> torch.Tensor:
    """Root mean square of the finite elements, of the whole or per row (kept as a dimension)."""
    if by_row and value.dim() >= 2:
        rows = [_finite(v).square().mean(-1, keepdim=True) for v in _pieces(value)]
        return torch.cat(rows).sqrt()
    if not value.numel():
        return value.new_zeros(())
    total = sum(_finite(v).square().sum() for v in value.reshape(-1).split(PIECE))
    return torch.as_tensor(total / value.numel()).sqrt()


def _mean(part: torch.Tensor) -> torch.Tensor:
    """Mean of the elements, those that are not finite as 0."""
    total = sum(_finite(p).sum() for p in part.reshape(-1).split(PIECE))
    return torch.as_tensor(total / part.numel())


def _pieces(value: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Along the first dimension, so that what is computed of each stays small."""
    per_row = max(value.numel() // max(value.shape[0], 1), 1)
    return value.split(max(PIECE // per_row, 1))


def _off(native: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """What torch's own output is off by, at worst; per row where there are rows."""
    if value.dim() < 2 or not value.numel():
        return _worst(native.double() - value, by_row=True)
    pairs = zip(_pieces(native), _pieces(value), strict=True)
    return torch.cat([_worst(n.double() - v, by_row=True) for n, v in pairs])


def _worst(error: torch.Tensor, *, by_row: bool) -> torch.Tensor:
    """Largest finite error, of the whole or per row (kept as a dimension)."""
    size = _finite(error).abs()
    if not size.numel():
        return size
    return size.amax(-1, keepdim=True) if by_row and size.dim() >= 2 else size.amax()


def _steps(
    op: ops.Op, inputs: tuple[Any, ...], values: tuple[torch.Tensor, ...]
) -> list[torch.Tensor]:
    """How far each element of the answers moves, at most, with the inputs' last place.

    One direction is not enough: what an element does may cancel in it by chance, and a sound
    kernel's roundings go in another.
    """
    steps = [v.new_zeros(()) for v in values]
    for which in range(NUDGES):
        moved = evaluate(op, _nudged(upcast(inputs), which))[1]
        for i, (there, here) in enumerate(zip(moved, values, strict=True)):
            steps[i] = torch.maximum(steps[i], _finite(there.double() - here).abs())
    return steps


def _nudged(inputs: tuple[Any, ...], which: int) -> tuple[Any, ...]:
    """The inputs one float32 unit in the last place away: all up first, then up or down at random.

    Which way each element goes is the same in every call on a device.
    """
    generators: dict[torch.device, torch.Generator] = {}

    def nudge(x: Any) -> Any:
        if not _floating(x):
            return x
        sign = torch.ones_like(x)
        if which:
            if x.device not in generators:
                generators[x.device] = torch.Generator(x.device).manual_seed(which)
            draw = generators[x.device]
            up = torch.randint(2, x.shape, generator=draw, device=x.device, dtype=torch.int8)
            sign = up.mul_(2).sub_(1).to(x)
        return x * (1 + sign * _EPS32)

    return tuple(nudge(x) for x in inputs)


def _lowered(inputs: tuple[Any, ...], dtype: str) -> tuple[Any, ...]:
    """The inputs one precision step lower: TF32 for float32, float8 for the half types."""

    def lower(x: Any) -> Any:
        if not _floating(x):
            return x
        if dtype == "float32":
            bits = (x.view(torch.int32) + 0x1000) & ~0x1FFF
            return torch.where(x.isfinite(), bits.view(torch.float32), x)
        if dtype in ("float16", "bfloat16"):
            return x.float().clamp(-448, 448).to(torch.float8_e4m3fn).to(x.dtype)
        return x.float().to(x.dtype)

    return tuple(lower(x.contiguous() if isinstance(x, torch.Tensor) else x) for x in inputs)


def judge(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> Judgement:
    """An output of any float dtype against the oracle.

    NaN must be where the oracle has it and nowhere else, infinities likewise with their sign; a
    value that the output's dtype can't hold may be infinite.
    """
    if got.numel() == 0:
        return Judgement(0.0, 0.0, None)
    if got.numel() <= PIECE:
        return _judge(got, value, allowed)
    flat = (got.reshape(-1), value.reshape(-1), allowed.expand_as(value).reshape(-1))
    pieces = zip(*(t.split(PIECE) for t in flat), strict=True)
    judged = [_judge(*piece) for piece in pieces]
    wrong = None
    if any(not j.right for j in judged):
        sizes = [len(p) for p in flat[0].split(PIECE)]
        none = [torch.zeros(n, dtype=torch.bool, device=got.device) for n in sizes]
        masks = [n if j.wrong is None else j.wrong for n, j in zip(none, judged, strict=True)]
        wrong = torch.cat(masks).reshape(got.shape)
    return Judgement(
        max(j.error_share for j in judged), max(j.max_abs_error for j in judged), wrong
    )


def _right(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> bool:
    """Whether `judge` would find it right."""
    if 0 < got.numel() <= PIECE:
        share, error = _at_a_glance(got, value, allowed)
        if math.isfinite(share) and math.isfinite(error):
            return share <= 1.0
    return judge(got, value, allowed).right


def _at_a_glance(
    got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor
) -> tuple[float, float]:
    """Worst share of what is allowed, and worst error, where all of them are finite; one transfer.

    NaN or infinite where one is not, or where nothing is allowed and nothing is wrong.
    """
    error = (got.double() - value).abs_()
    largest = error.amax()
    share, worst = torch.stack((error.div_(allowed).amax(), largest)).tolist()
    return share, worst


def _judge(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> Judgement:
    """The same for outputs of moderate size, at once."""
    share_of_all, largest_error = _at_a_glance(got, value, allowed)
    if share_of_all <= 1.0 and math.isfinite(largest_error):
        return Judgement(share_of_all, largest_error, None)
    largest = torch.finfo(got.dtype).max if got.dtype.is_floating_point else float("inf")
    have = got.double()
    overflows = have.isinf() & (value.abs() >= 0.999 * largest) & (have.sign() == value.sign())
    same = (have == value) | (have.isnan() & value.isnan()) | overflows
    error = torch.where(same, 0.0, (have - value).abs())
    share = torch.where(same, 0.0, error / allowed)
    wrong = ~(share <= 1.0)
    finite_error = float(_finite(error).amax())
    if not bool(wrong.any()):
        return Judgement(float(share.amax()), finite_error, None)
    worst = float(share.amax())
    return Judgement(float("inf") if math.isnan(worst) else worst, finite_error, wrong)


def within(got: torch.Tensor, value: torch.Tensor, allowed: torch.Tensor) -> bool:
    """Whether every element is within what is allowed, quickly; a NaN or an infinity is not."""
    flat = (got.reshape(-1), value.reshape(-1), allowed.expand_as(value).reshape(-1))
    pieces = zip(*(t.split(4 * PIECE) for t in flat), strict=True)
    return bool(torch.stack([((g.double() - v).abs_() <= a).all() for g, v, a in pieces]).all())


@dataclass(frozen=True)
class Relaxed:
    """What other answers of a case may be off by, from what its first answer may.

    The spec's part is computed anew; how much torch's own error and the conditioning widened it is
    taken over, as the largest factor by which they did.
    """

    rtol: float
    by_row: bool
    factors: tuple[float, ...]

    @classmethod
    def of(cls, expected: Expected, op: ops.Op) -> Relaxed:
        """From a case's expected outputs."""
        by_row = op.op_class != "elementwise"
        rtol = expected.tolerance.rtol or 1e-12
        factors = []
        for first, allowed in zip(expected.values, expected.allowed, strict=True):
            stated = rtol * (first.abs() + _typical(first, by_row=by_row))
            widened = float((_finite(allowed / stated)).amax()) if first.numel() else 1.0
            factors.append(max(widened, 1.0))
        return cls(rtol, by_row, tuple(factors))

    def allowed(self, values: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """For answers in float64."""
        return tuple(
            factor * self.rtol * (value.abs() + _typical(value, by_row=self.by_row))
            for factor, value in zip(self.factors, values, strict=True)
        )
