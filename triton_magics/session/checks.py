"""Check values of the user before anything runs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from triton_magics.errors import BadValue, UnknownName, did_you_mean
from triton_magics.model import SIZES, shape_of

MAX_RUNS = 1000
MAX_BUDGET_S = 3600.0
MAX_TIMEOUT_S = 86400.0
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader reads exactly


def check_sizes(sizes: Sequence[str], names: Sequence[str] = SIZES, *, shapes: bool = True) -> None:
    """Check that every size is one of the op's, or a shape.

    Args:
        sizes: of the user.
        names: of the op's sizes.
        shapes: a shape (`257x1023`) may stand for a size.

    Raises:
        UnknownName: one is neither.
        BadValue: there is none.
    """
    if not sizes:
        raise BadValue(f"no size: name some of {','.join(names)}, or a shape")
    for size in sizes:
        if size not in names and not (shapes and shape_of(size)):
            own = ", or a shape such as 8192x151936" if shapes else ""
            hint = did_you_mean(size, names)
            raise UnknownName(f"unknown size {size!r}.{hint} Known: {', '.join(names)}{own}")


def choose_seed(seed: int | None) -> int:
    """Return the requested seed, else a new one.

    Raises:
        BadValue: it is no seed.
    """
    if seed is None:
        return secrets.randbits(24)
    if not 0 <= seed <= MAX_SEED:
        raise BadValue(f"seed={seed}: write a number from 0 to {MAX_SEED}")
    return seed
