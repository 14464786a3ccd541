"""The plan of a validation: which cases it has, and which combinations of values they cover.

The plan follows from a seed and the numbers in the version's source. It is made before the code is
loaded, so that the code can't influence it. The sizes are added to the cases of the design.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch

from triton_magics import operators
from triton_magics.execution.job_requests import PlanJob, ValidateJob
from triton_magics.harness.correctness.case_design import Design
from triton_magics.languages.kernel_runtime import KernelRuntime
from triton_magics.model import (
    CUSTOM_SIZE,
    Case,
    LeftOut,
    Plan,
    PlanScope,
)

_EXTENT = "an extent"  # in place of a size, where cases are put in order


@dataclass(frozen=True)
class DeviceFacts:
    """The properties of a device that a plan depends on.

    Attributes:
        is_interpreted: an interpreter runs the kernels, on the CPU.
        refused: dtypes that it can't run, with the reasons.
    """

    is_interpreted: bool = False
    refused: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, device: torch.device, runtime: KernelRuntime, op: operators.Op) -> DeviceFacts:
        """Return the facts of a device of this process, or of one of its kind."""
        if device.type != "cpu":
            return cls()
        refused = {d: reason for d in op.dtypes if (reason := runtime.refused_on_cpu(d))}
        return cls(is_interpreted=True, refused=refused)


def plan_cases(op: operators.Op, request: ValidateJob | PlanJob, device: DeviceFacts) -> Plan:
    """Return every case of a validation, the fastest and most sensitive first.

    Raises:
        UserFault: the op's `make_inputs` raised on a small shape.
    """
    dtypes = request.dtypes or op.dtypes
    draw = random.Random(request.seed)  # noqa: S311 (a plan that can be replayed from its seed)
    scope = None
    shapes = tuple(op.sizes.values()) if request.op.inputs else request.shapes
    if shapes:
        cases = [Case(shape=s, dtype=d, seed=0) for d in dtypes for s in shapes]
    else:
        runs = tuple(d for d in dtypes if d not in device.refused) or dtypes[:1]
        design = Design(op, runs, request.seed, is_interpreted=device.is_interpreted)
        if request.plan == "quick":
            cases = list(design.quick(draw))
        else:
            source = request.version.body if isinstance(request, ValidateJob) else ""
            cases, scope = design.complete(request.plan, source)
            scope = _with_refused(scope, dtypes, device)
        cases += [
            Case(shape=op.sizes[s], dtype=d, size=s, seed=0) for d in dtypes for s in op.sizes
        ]
        own = itertools.product(dtypes, request.own_shapes)
        cases += [Case(shape=s, dtype=d, size=CUSTOM_SIZE, seed=0) for d, s in own]
    order = {size: i for i, size in enumerate(_order(op, device))}
    cases.sort(key=lambda c: order.get(_EXTENT if c.extent else c.size or "", 0))
    return Plan(
        op=request.op.name, plan=request.plan, seed=request.seed, dtypes=dtypes, scope=scope,
        cases=tuple(c.evolve(seed=draw.getrandbits(31)) for c in cases),
    )  # fmt: skip


def _order(op: operators.Op, device: DeviceFacts) -> tuple[str, ...]:
    """Return the sizes in the order in which their cases run; a design's own cases come first.

    In an interpreter extents come before the sizes: few programs compute an extent, and the budget
    may be spent on the sizes.
    """
    if device.is_interpreted:
        return ("", *op.sizes, CUSTOM_SIZE)
    return ("", *op.sizes, _EXTENT, CUSTOM_SIZE)


def _with_refused(scope: PlanScope, dtypes: Iterable[str], device: DeviceFacts) -> PlanScope:
    """Add the dtypes that the device can't run to what the plan leaves out."""
    refused = [LeftOut(item=d, reason=device.refused[d]) for d in dtypes if d in device.refused]
    return scope.evolve(impossible=(*scope.impossible, *refused))
