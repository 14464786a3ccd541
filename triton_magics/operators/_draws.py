"""Random numbers of an op's scalar arguments."""

from __future__ import annotations

import random

import torch


def scalars_of(generator: torch.Generator) -> random.Random:
    """Return a source of Python numbers that depends on the generator's seed.

    A number that is drawn on a GPU makes the host wait for it, and a meta tensor has none.
    """
    return random.Random(f"{generator.initial_seed()} scalars")  # noqa: S311 (replayed)
