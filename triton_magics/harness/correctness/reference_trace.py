"""Evaluate an op's reference with one of its operations changed.

Torch's own functions are taken apart into simple operations (a softmax into maximum, difference,
exp, sum and quotient), so that a change can be made between them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.perturbed_arithmetic import var_mean

MAX_OPERATIONS = 80
_NOT_COMPUTING = {
    "view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "permute", "transpose",
    "t", "slice", "select", "clone", "copy_", "_to_copy", "detach", "empty", "empty_like", "alias",
    "new_empty", "scalar_tensor", "full", "full_like", "zeros", "ones", "ones_like", "zeros_like",
    "lift_fresh", "arange", "unbind", "split", "contiguous", "as_strided", "_local_scalar_dense",
    "empty_strided", "new_zeros", "new_full", "new_ones",
}  # fmt: skip


@dataclass(frozen=True)
class TracedOperation:
    """One operation of a reference, as it was called.

    Attributes:
        name: of torch's operation, such as `amax`.
        number: of this name, from 1; None if the reference calls it once.
        sources: the operations that computed the arguments; None for an input.
        origins: the same, also where an argument is a view of their result.
        positions: of the reference's inputs that are arguments; None for other arguments.
    """

    function: Callable[..., Any]
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: torch.Tensor
    sources: tuple[TracedOperation | None, ...] = ()
    origins: tuple[TracedOperation | None, ...] = ()
    positions: tuple[int | None, ...] = ()
    number: int | None = None

    def call(self, *args: Any) -> torch.Tensor:
        """Call it again with other arguments."""
        result: torch.Tensor = self.function(*args, **self.kwargs)
        return result


Apply = Callable[[TracedOperation], torch.Tensor]


@dataclass
class Trace(TorchDispatchMode):
    """Record the operations of a reference, or replace the result of one.

    Attributes:
        at: the index of the operation to change.
        apply: returns its result.
        inputs: of the reference.
        operations: those that ran, in order.
    """

    at: int | None = None
    apply: Apply | None = None
    inputs: tuple[Any, ...] = ()
    operations: list[TracedOperation] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._made_by: dict[int, TracedOperation] = {}
        self._view_of: dict[int, TracedOperation] = {}
        self._views: list[torch.Tensor] = []  # kept, so that no other tensor gets its id

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if simple := _decompositions().get(func):
            with self:
                result = simple(*args, **kwargs)
            if result is not NotImplemented:
                return result
        name = func.overloadpacket.__name__
        if pure := _find_out_of_place(func):
            before = (args[0].clone(), *args[1:])
            operation = TracedOperation(pure, name[:-1], before, kwargs, pure(*before, **kwargs))
            args[0].copy_(self._record(operation, args))
            self._made_by[id(args[0])] = self.operations[-1]
            return args[0]
        result = func(*args, **kwargs)
        if name in _NOT_COMPUTING or not isinstance(result, torch.Tensor):
            self._record_view(args, result)
            return result
        return self._record(TracedOperation(func, name, args, kwargs, result))

    def _record(
        self, operation: TracedOperation, arguments: tuple[Any, ...] | None = None
    ) -> torch.Tensor:
        """Record an operation; `arguments` are those of which it has copies."""
        arguments = operation.args if arguments is None else arguments
        sources = tuple(self._made_by.get(id(x)) for x in arguments)
        origins = tuple(self._origin(x) for x in arguments)
        positions = tuple(self._position(x) for x in arguments)
        operation = replace(operation, sources=sources, origins=origins, positions=positions)
        result = operation.result
        if len(self.operations) == self.at and self.apply is not None:
            changed = self.apply(operation)
            result = changed.to(result.dtype).reshape(result.shape).clone()
        self.operations.append(operation)
        self._made_by[id(result)] = operation
        return result

    def _position(self, x: Any) -> int | None:
        """Return which input an argument is; None of any other."""
        own = (i for i, each in enumerate(self.inputs) if each is x)
        return next(own, None) if isinstance(x, torch.Tensor) else None

    def _origin(self, x: Any) -> TracedOperation | None:
        return self._made_by.get(id(x)) or self._view_of.get(id(x))

    def _record_view(self, args: tuple[Any, ...], result: Any) -> None:
        if isinstance(result, torch.Tensor) and args and (origin := self._origin(args[0])):
            self._view_of[id(result)] = origin
            self._views.append(result)


def _find_out_of_place(func: Any) -> Any:
    """Return the arithmetic that a function such as `add_` does in place; None for another one."""
    name = func.overloadpacket.__name__
    if name not in ("add_", "sub_", "mul_", "div_", "exp_", "rsqrt_", "sqrt_"):
        return None
    return getattr(getattr(torch.ops.aten, name[:-1]), func._overloadname)


def trace_reference(op: operators.Op, inputs: tuple[Any, ...]) -> list[TracedOperation]:
    """Return the operations of the reference on these inputs, numbered by name."""
    trace = Trace()
    _run(op, inputs, trace)
    totals, counts, numbered = Counter(o.name for o in trace.operations), Counter[str](), []
    for operation in trace.operations:
        counts[operation.name] += 1
        number = counts[operation.name] if totals[operation.name] > 1 else None
        numbered.append(replace(operation, number=number))
    return numbered


def evaluate_changed(
    op: operators.Op, inputs: tuple[Any, ...], at: int | None = None, apply: Apply | None = None
) -> tuple[torch.Tensor, ...]:
    """Return all outputs of the reference with the operation `at` replaced."""
    return _run(op, inputs, Trace(at, apply))


def _run(op: operators.Op, inputs: tuple[Any, ...], trace: Trace) -> tuple[torch.Tensor, ...]:
    own = oracle.own_inputs(op, inputs)
    trace.inputs = own
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), trace, _AttentionInSteps():
        value = op.reference(*own)
    return tuple(oracle.all_outputs(op, value, own))


# --------------------------------------------- torch's functions, made of simple operations
# torch has a table of these too, which takes more than a second to import.


def _softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    shifted = x - torch.amax(x, dim, keepdim=True)
    weights = torch.exp(shifted)
    return weights / torch.sum(weights, dim, keepdim=True)


def _log_softmax(x: torch.Tensor, dim: int, half_to_float: bool = False) -> torch.Tensor:
    top = torch.amax(x, dim, keepdim=True)
    shifted = x - top
    log_sum = torch.log(torch.sum(torch.exp(shifted), dim, keepdim=True))
    result = shifted - log_sum
    result.parts = (x, top, log_sum)
    return result


class _AttentionInSteps(TorchFunctionMode):
    """Compute attention as kernels do: the product, then the scale, the mask and the softmax."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        is_attention = func is torch.nn.functional.scaled_dot_product_attention
        if is_attention and len(args) == 3 and kwargs.keys() <= {"is_causal", "scale"}:
            return _attention(*args, **kwargs)
        return func(*args, **kwargs)


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(visible.logical_not(), -math.inf)
    return torch.softmax(scores, -1) @ v


def _add(x: torch.Tensor, y: Any, *, alpha: float = 1) -> Any:
    return NotImplemented if alpha == 1 else x + y * alpha


def _gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    if approximate == "none":
        return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return x * 0.5 * (1 + torch.tanh(inner))


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.reciprocal(torch.exp(-x) + 1)


def _silu(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def _layer_norm(
    x: torch.Tensor,
    shape: list[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dims = [*range(x.dim() - len(shape), x.dim())]
    var, mean = var_mean(x, dims, correction=0, keepdim=True)
    scale = torch.rsqrt(var + eps)
    out = (x - mean) * scale
    out = out if weight is None else out * weight
    return out if bias is None else out + bias, mean, scale


def _addmm(
    bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    return bias * beta + torch.mm(a, b) * alpha


def _nll_loss(
    x: torch.Tensor, target: torch.Tensor, weight: Any, reduction: int, ignored: int
) -> tuple[torch.Tensor, torch.Tensor]:
    if weight is not None or x.dim() != 2 or bool((target == ignored).any()):
        return torch.ops.aten.nll_loss_forward(x, target, weight, reduction, ignored)
    if parts := getattr(x, "parts", None):  # as kernels do: one logit a row, and no softmax
        logits, top, log_sum = parts
        picked = torch.gather(logits, 1, target[:, None]).reshape(-1)
        losses = (log_sum + top).reshape(-1) - picked
    else:
        losses = -torch.gather(x, 1, target[:, None]).reshape(-1)
    reduced = (lambda t: t, torch.mean, torch.sum)[reduction](losses)
    return reduced, torch.empty_like(losses)


@cache
def _decompositions() -> dict[Any, Callable[..., Any]]:
    """Return by torch's operation how it is made of simpler ones."""
    aten = torch.ops.aten
    return {
        aten.add.Tensor: _add,
        aten._softmax.default: _softmax,
        aten._safe_softmax.default: lambda x, dim, dtype=None: _softmax(x, dim),
        aten._log_softmax.default: _log_softmax,
        aten.gelu.default: _gelu,
        aten.silu.default: _silu,
        aten.sigmoid.default: _sigmoid,
        aten.native_layer_norm.default: _layer_norm,
        aten.var_mean.correction: var_mean,
        aten.var.correction: lambda *args, **kwargs: var_mean(*args, **kwargs)[0],
        aten.std.correction: lambda *args, **kwargs: torch.sqrt(var_mean(*args, **kwargs)[0]),
        aten.addmm.default: _addmm,
        aten.nll_loss_forward.default: _nll_loss,
    }
