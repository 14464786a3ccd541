"""Random numbers: of an op's scalar arguments, and of tensors without memory."""

from __future__ import annotations

import random
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

META = torch.device("meta")


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
        if func in (torch.randn, torch.rand) and kwargs.get("device") == META:
            return torch.empty(*args, **{k: v for k, v in kwargs.items() if k != "generator"})
        return func(*args, **kwargs)
