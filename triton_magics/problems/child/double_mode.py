"""Evaluate in float64 a reference that names its own precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
_CASTS = ("float", "half", "bfloat16")


def in_double(inputs: tuple[Any, ...]) -> AbstractContextManager[Any]:
    """Return a context in which float64 inputs stay float64, whatever dtype the code names.

    References of kernels often compute in float32 and round at the end: `x.to(torch.float32)`. For
    the oracle the same formula is needed without these roundings.
    """
    doubles = any(isinstance(x, torch.Tensor) and x.dtype == torch.float64 for x in inputs)
    return DoubleMode() if doubles else nullcontext()


class DoubleMode(TorchFunctionMode):
    """Replace every lower floating dtype in a call of torch by float64."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the function with float64 in place of lower floating dtypes."""
        name = getattr(function, "__name__", "")
        if name in _CASTS and len(args) == 1 and isinstance(args[0], torch.Tensor):
            return args[0].to(torch.float64)
        args = tuple(map(_widen, args))
        return function(*args, **{k: _widen(v) for k, v in (kwargs or {}).items()})


def _widen(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value in _FLOATS else value
