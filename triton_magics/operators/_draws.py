"""Random numbers: of an op's scalar arguments, and of tensors without memory."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

META = torch.device("meta")
_DRAWS = (torch.randn, torch.rand, torch.randint)


def scalars_of(generator: torch.Generator) -> random.Random:
    """Return a source of Python numbers that depends on the generator's seed.

    A number that is drawn on a GPU makes the host wait for it, and a meta tensor has none.
    """
    return random.Random(f"{generator.initial_seed()} scalars")  # noqa: S311 (replayed)


class DrawNothing(TorchFunctionMode):
    """Draw no numbers for tensors without memory, for which torch takes a millisecond each."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call a function of torch."""
        kwargs = kwargs or {}
        if func not in _DRAWS or torch.device(kwargs.get("device") or "cpu") != META:
            return func(*args, **kwargs)
        others = {k: v for k, v in kwargs.items() if k not in ("generator", "low", "high")}
        if func is torch.randint:  # its size comes last
            return torch.empty(*args[-1:], **{"dtype": torch.int64, **others})
        return torch.empty(*args, **others)
