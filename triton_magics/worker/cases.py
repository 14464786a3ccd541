"""The plan of a validation, and the inputs of a case.

The plan is made from a seed before the version's code is loaded, so that nothing the code does can
bend it. Regimes and layouts are done here, to whatever an op's `make_inputs` gives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from triton_magics import ops
from triton_magics.engine.protocol import PlanJob, ValidateJob
from triton_magics.model import SIZES, Case
from triton_magics.worker.guard import POISON, Guarded, place
from triton_magics.worker.load import UserFault

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int32": torch.int32,
    "int64": torch.int64,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
REGIMES = (
    "shifted", "x10", "large", "equal", "zeros", "mean_heavy", "negative", "x0.1", "tiny",
    "nonfinite",
)  # fmt: skip
LAYOUTS = ("transposed", "strided")
OWN = "own"  # the size of a case whose shape the user keeps for the op
_FEW_SHAPES, _FEW_REGIMES, _FEW_LAYOUTS = 3, 3, 1


def plan(op: ops.Op, job: ValidateJob | PlanJob, dtypes: tuple[str, ...]) -> tuple[Case, ...]:
    """Every case of a validation, the quickest and most revealing first.

    The first dtype gets every awkward shape, regime and layout; the others a part of them.
    """
    draw = random.Random(job.seed)  # noqa: S311 (a plan that can be replayed from its seed)
    if job.shapes:
        wanted = [Case(shape=s, dtype=d, seed=0) for d in dtypes for s in job.shapes]
    elif job.plan == "quick":
        wanted = [c for i, d in enumerate(dtypes) for c in _quick(op, d, first=i == 0)]
    else:
        wanted = [c for i, d in enumerate(dtypes) for c in _full(op, d, first=i == 0)]
    if not job.shapes:
        wanted += [Case(shape=s, dtype=d, size=OWN, seed=0) for d in dtypes for s in job.own_shapes]
    order = {"small": 1, "medium": 2, "large": 3, OWN: 4}
    wanted.sort(key=lambda c: order.get(c.size or "", 0))
    return tuple(c.model_copy(update={"seed": draw.getrandbits(31)}) for c in wanted)


def _full(op: ops.Op, dtype: str, *, first: bool) -> Iterator[Case]:
    shapes = op.shapes if first else op.shapes[:_FEW_SHAPES]
    regimes = _regimes(op) if first else _regimes(op)[:_FEW_REGIMES]
    layouts = LAYOUTS if first else LAYOUTS[:_FEW_LAYOUTS]
    probe = _probe_shape(op)
    yield Case(shape=op.sizes["small"], dtype=dtype, size="small", seed=0)
    yield from (Case(shape=s, dtype=dtype, seed=0) for s in shapes)
    yield from (Case(shape=probe, dtype=dtype, layout=lay, seed=0) for lay in layouts)
    yield from (Case(shape=probe, dtype=dtype, regime=r, seed=0) for r in regimes)
    yield from (Case(shape=op.sizes[s], dtype=dtype, size=s, seed=0) for s in SIZES[1:])


def _quick(op: ops.Op, dtype: str, *, first: bool) -> Iterator[Case]:
    probe = _probe_shape(op)
    yield from (Case(shape=op.sizes[s], dtype=dtype, size=s, seed=0) for s in SIZES)
    yield from (Case(shape=probe, dtype=dtype, regime=r, seed=0) for r in op.quick_regimes)
    if first:
        yield from (Case(shape=s, dtype=dtype, seed=0) for s in op.shapes[:2])
        yield Case(shape=probe, dtype=dtype, layout="transposed", seed=0)
        yield Case(shape=probe, dtype=dtype, regime="shifted", seed=0)


def _regimes(op: ops.Op) -> tuple[str, ...]:
    skipped = set(op.skip_regimes)
    if not op.defined_for_nonfinite:
        skipped.add("nonfinite")
    return tuple(r for r in REGIMES if r not in skipped)


def _probe_shape(op: ops.Op) -> tuple[int, ...]:
    """An awkward shape of moderate size: the one for regimes and layouts."""

    def volume(shape: tuple[int, ...]) -> int:
        product = 1
        for n in shape:
            product *= n
        return product

    fitting = [s for s in op.shapes if 32 <= volume(s) <= 20_000 and min(s) > 1]
    return max(fitting, key=volume, default=op.sizes["small"])


# ------------------------------------------------------------------------------------ inputs


@dataclass(frozen=True)
class Inputs:
    """The inputs of a case: what the version gets, its bands, and a pristine copy."""

    given: tuple[Any, ...]
    guards: tuple[Guarded, ...]
    pristine: tuple[Any, ...]
    mutates: tuple[int, ...] = ()

    @property
    def unchanged(self) -> tuple[Any, ...]:
        """The inputs that the op does not declare as changed."""
        return tuple(x for i, x in enumerate(self.given) if i not in self.mutates)

    @property
    def largest(self) -> int:
        """Elements of the largest input."""
        return max((x.numel() for x in self.pristine if isinstance(x, torch.Tensor)), default=0)

    def give_back(self) -> None:
        """Frees the memory of what the version got, until `reset`; the pristine copy stays."""
        for guard in self.guards:
            guard.buffer.untyped_storage().resize_(0)

    def reset(self) -> None:
        """Gives the inputs that the op changes their first contents again, or all if freed."""
        again: Iterable[int] = self.mutates
        if any(not guard.buffer.untyped_storage().nbytes() for guard in self.guards):
            again = [i for i, x in enumerate(self.given) if isinstance(x, torch.Tensor)]
            for guard in self.guards:
                guard.buffer.untyped_storage().resize_(guard.buffer.numel())
                guard.buffer.fill_(POISON)
        for i in again:
            self.given[i].copy_(self.pristine[i])

    def changed(self) -> str | None:
        """Which input the version wrote to, if any; bitwise, so that NaN equals itself."""
        for i, (now, then) in enumerate(zip(self.given, self.pristine, strict=True)):
            if i in self.mutates or not isinstance(then, torch.Tensor):
                continue
            if not same_bits(now, then):
                return f"input {i} was changed by the call"
        return None


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are equal bit for bit (shape and dtype included)."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.is_floating_point:
        as_int = {2: torch.int16, 4: torch.int32, 8: torch.int64, 1: torch.uint8}[a.element_size()]
        return bool(torch.equal(a.contiguous().view(as_int), b.contiguous().view(as_int)))
    return bool(torch.equal(a, b))


def make_pristine(op: ops.Op, case: Case, device: torch.device) -> tuple[Any, ...]:
    """What the op's `make_inputs` gives for a case, with the case's regime; contiguous."""
    generator = torch.Generator(device=device)
    generator.manual_seed(case.seed)
    try:
        made = op.make_inputs(case.shape, DTYPES[case.dtype], device, generator)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise UserFault(
            f"{op.name}: no inputs could be made for {case.label}: {type(error).__name__}: {error}"
        ) from error
    return tuple(_with_regime(x, case, generator) for x in made)


def make_inputs(op: ops.Op, case: Case, device: torch.device) -> Inputs:
    """The inputs of a case, in their layout, between guard bands."""
    pristine = make_pristine(op, case, device)
    given, guards = [], []
    for i, x in enumerate(pristine):
        if isinstance(x, torch.Tensor) and x.numel() and x.dtype != torch.bool:
            tensor, guarded = place(tuple(x.shape), _stride(x, case.layout), x, f"input {i}")
            tensor.copy_(x)
            given.append(tensor)
            guards.append(guarded)
        else:
            given.append(x.clone() if isinstance(x, torch.Tensor) else x)
    return Inputs(tuple(given), tuple(guards), pristine, op.mutates)


def _stride(x: torch.Tensor, layout: str) -> tuple[int, ...]:
    """Strides of a layout: column-major, or every second element of padded rows."""
    contiguous = torch.empty(x.shape, device="meta").stride()
    if layout == "contiguous" or x.dim() == 0:
        return contiguous
    if layout == "transposed" and x.dim() >= 2:
        swapped = torch.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), device="meta")
        return swapped.transpose(-1, -2).stride()
    wide = torch.empty((*x.shape[:-1], 2 * x.shape[-1] + 6), device="meta")
    return wide[..., : 2 * x.shape[-1] : 2].stride()


_SHIFT = {"float16": 64.0, "bfloat16": 64.0}
_LARGE = {"float16": 1e3}
_TINY = {"float16": 1e-3}


def _with_regime(x: Any, case: Case, generator: torch.Generator) -> Any:
    if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point or case.regime == "normal":
        return x
    if case.regime == "nonfinite":
        return _sprinkled(x, generator)
    if case.regime == "equal":
        return x.flatten()[0].expand(x.shape).contiguous() if x.numel() else x
    scale = {
        "x0.1": 0.1,
        "x10": 10.0,
        "zeros": 0.0,
        "large": _LARGE.get(case.dtype, 1e4),
        "tiny": _TINY.get(case.dtype, 1e-4),
    }.get(case.regime, 1.0)
    mean = _SHIFT.get(case.dtype, 1000.0)
    shift = {"shifted": -5.0, "mean_heavy": mean, "negative": -mean}.get(case.regime, 0.0)
    return x * scale + shift


def _sprinkled(x: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A few NaN and infinities at random places, most of the rows left clean."""
    flat = x.clone().flatten()
    n = max(1, flat.numel() // 2000)
    for value in (float("nan"), float("inf"), float("-inf")):
        where = torch.randint(flat.numel(), (n,), device=x.device, generator=generator)
        flat[where] = value
    return flat.reshape(x.shape)
