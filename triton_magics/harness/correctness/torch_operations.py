"""ATen operations of a version: which of them compute, and how much work they do.

An operation computes unless it is known to allocate, fill, view, copy, convert or move elements;
an unknown one computes. Work is counted in floating-point operations, one an element.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from triton_magics.model import Value

ALLOCATIONS = frozenset({
    "empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
})  # fmt: skip
FILLS = frozenset({
    "zeros", "zeros_like", "new_zeros", "zero_", "ones", "ones_like", "new_ones", "full",
    "full_like", "new_full", "fill", "fill_", "scalar_tensor", "arange", "eye", "tril_indices",
    "triu_indices", "_foreach_zero_", "linspace",
})  # fmt: skip
MOVEMENTS = frozenset({
    "clone", "copy", "copy_", "_copy_from", "_to_copy", "to", "contiguous", "cat", "stack",
    "hstack", "vstack", "concat", "index", "index_select", "gather", "take",
    "take_along_dim", "masked_select", "scatter", "scatter_", "slice_scatter",
    "select_scatter", "diagonal_scatter", "index_copy", "index_copy_", "index_fill_",
    "masked_fill", "masked_fill_", "masked_scatter", "masked_scatter_", "where",
    "tril", "tril_", "triu", "triu_", "constant_pad_nd", "pad", "roll",
    "flip", "rot90", "repeat", "repeat_interleave", "tile", "unfold", "im2col", "pixel_shuffle",
    "pixel_unshuffle", "embedding", "reshape", "flatten", "resolve_conj", "resolve_neg", "set_",
    "resize_", "_unsafe_view", "_reshape_alias", "lift_fresh", "lift_fresh_copy", "alias_copy",
    "view_copy", "_pin_memory", "_foreach_copy_", "split_with_sizes_copy",
})  # fmt: skip
SCANS = frozenset({"cumsum", "cumsum_", "cumprod", "cummax", "cummin", "bincount"})
SORTS = frozenset({"sort", "argsort", "topk"})
# Positions of the two factors.
_CONTRACTIONS = {
    "mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "mv": (0, 1), "addmv": (1, 2),
    "dot": (0, 1), "matmul": (0, 1), "linear": (0, 1), "_scaled_mm": (0, 1), "_int_mm": (0, 1),
}  # fmt: skip


class OperationMode(TorchDispatchMode):
    """A dispatch mode that torch's compiler need not know: its import takes seconds."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Site(Value):
    """A place in a version's file that calls a torch operation; `line` is 0 if it is unknown."""

    operation: str
    line: int


class Operation(Value):
    """A torch operation that computed: its place, and its work in operations."""

    site: Site
    work: float


def does_device_work(func: Any) -> bool:
    """Return whether an operation makes the device work: it is no view and no allocation."""
    name = func.overloadpacket.__name__
    no_work = ("_unsafe_view", "_reshape_alias", "lift_fresh", "set_", "resize_")
    return not (func.is_view or name in ALLOCATIONS or name in no_work)


def reads_memory(func: Any) -> bool:
    """Return False for a view and an allocation, which need no element.

    An operation made of others, such as `contiguous`, may copy where its schema says a view.
    """
    if func.overloadpacket.__name__ in ALLOCATIONS:
        return False
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    return not func.is_view or bool(func.has_kernel_for_dispatch_key(composite))


def takes_default_dtype(kwargs: dict[str, Any], args: Sequence[Any], result: Any) -> bool:
    """Return whether a result has torch's default dtype: from no tensor, and without a dtype."""
    if kwargs.get("dtype") is not None or not isinstance(result, torch.Tensor):
        return False
    is_new = not any(isinstance(x, torch.Tensor) for x in tree_leaves(args))
    return is_new and result.dtype == torch.get_default_dtype()


def computes(func: Any, args: Sequence[Any], result: Any) -> bool:
    """Return whether an operation computes; reading an element on the host does."""
    name = func.overloadpacket.__name__
    if name in ("index_put", "index_put_", "_index_put_impl_"):
        return len(args) > 3 and bool(args[3])  # it accumulates
    if name in MOVEMENTS and "reduce" not in func._overloadname:
        return _leaves_gpu(args, result)
    if not written_tensors(func, args, result):
        return torch.Tag.data_dependent_output in func.tags
    return not (func.is_view or name in ALLOCATIONS or name in FILLS)


def written_tensors(func: Any, args: Sequence[Any], result: Any) -> list[torch.Tensor]:
    """Return the tensors that an operation returns or changes."""
    parameters = zip(func._schema.arguments, args, strict=False)
    changed = [x for p, x in parameters if p.alias_info is not None and p.alias_info.is_write]
    leaves = tree_leaves((result, changed))
    return [t for t in leaves if isinstance(t, torch.Tensor)]


def _leaves_gpu(args: Sequence[Any], result: Any) -> bool:
    """Return whether a copy goes from a GPU to the host, where other code can compute."""
    sources = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
    copies = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
    return any(t.is_cuda for t in sources) and any(not t.is_cuda for t in copies)


def count_work(func: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> float:
    """Estimate the floating-point operations of an operation that computes.

    Contractions count two operations for each product; others count their largest tensor. An
    operation of unknown kind counts as a contraction of all its inputs.
    """
    name = func.overloadpacket.__name__
    inputs = [t.numel() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    outputs = [t.numel() for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
    largest = max((*inputs, *outputs, 1))
    if name in _CONTRACTIONS:
        return _contraction_work(*(args[i] for i in _CONTRACTIONS[name]))
    if name == "_local_scalar_dense":
        return 1.0
    elementwise = {torch.Tag.pointwise, getattr(torch.Tag, "reduction", torch.Tag.pointwise)}
    if elementwise & set(func.tags) or name in MOVEMENTS | SCANS:
        return float(largest)
    if name in SORTS:
        return largest * max(math.log2(largest), 1.0)
    if torch.Tag.nondeterministic_seeded in func.tags and len(inputs) < 2:
        return float(largest)
    return sum(inputs) * math.sqrt(max((*outputs, 1)))


def _contraction_work(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return 2 * m * n * k for the product of two tensors, whose contracted length is k."""
    return 2.0 * a.numel() * (b.numel() // max(a.shape[-1], 1) // _batches(b))


def _batches(b: torch.Tensor) -> int:
    return math.prod(b.shape[:-2]) if b.dim() > 2 else 1


def find_line(path: str) -> int:
    """Return the line of the innermost frame in a file, counted from 1; 0 if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno or 0
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def run_operation(mode: Any, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run an operation within the handler of a dispatch mode.

    The implementation of an operation that is not torch's own runs with the mode on, so that its
    torch operations are seen.
    """
    if is_builtin(func):
        return func(*args, **kwargs)
    keys = torch._C.DispatchKey
    leaves = tree_leaves((args, kwargs))
    on_gpu = any(isinstance(t, torch.Tensor) and t.is_cuda for t in leaves)
    candidates = (
        keys.CUDA if on_gpu else keys.CPU,
        keys.CompositeExplicitAutograd,
        keys.CompositeImplicitAutograd,
    )
    key = next((k for k in candidates if func.has_kernel_for_dispatch_key(k)), None)
    if key is None:
        return func(*args, **kwargs)
    with mode:
        return func._op_dk(key, *args, **kwargs)


def is_builtin(func: Any) -> bool:
    """Return whether an operation is torch's own."""
    return func.namespace in ("aten", "prims", "prim", "inductor", "c10d", "profiler")
