"""What a value that a person gave must be, before anything runs."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from triton_magics.errors import BadValue, UnknownName, did_you_mean
from triton_magics.model import SIZES, shape_of

MAX_RUNS = 1000
MAX_BUDGET_S = 3600.0
MAX_TIMEOUT_S = 86400.0
MAX_SEED = 2**53 - 1  # what JSON carries exactly, wherever it is read


def check_sizes(sizes: Sequence[str], *, shapes: bool = True) -> None:
    """Every size is one of the three, or a shape.

    Args:
        sizes: as they were typed.
        shapes: whether a shape (`257x1023`) may stand for a size.

    Raises:
        UnknownName: one is neither.
        BadValue: there is none.
    """
    if not sizes:
        raise BadValue(f"no size: name some of {','.join(SIZES)}, or a shape")
    for size in sizes:
        if size not in SIZES and not (shapes and shape_of(size)):
            own = ", or a shape such as 8192x151936" if shapes else ""
            hint = did_you_mean(size, SIZES)
            raise UnknownName(f"unknown size {size!r}.{hint} Known: {', '.join(SIZES)}{own}")


def check_runs(runs: int) -> None:
    """As many runs as one can wait for.

    Raises:
        BadValue: none, or too many.
    """
    if not 1 <= runs <= MAX_RUNS:
        raise BadValue(f"runs={runs}: write a number from 1 to {MAX_RUNS}")


def check_budget(budget_s: float | None) -> None:
    """As many seconds as one can wait for.

    Raises:
        BadValue: less than none, or too many.
    """
    if budget_s is not None and not 0 <= budget_s <= MAX_BUDGET_S:
        raise BadValue(f"budget={budget_s:g}: write seconds, from 0 to {MAX_BUDGET_S:g}")


def check_timeout(timeout_s: float | None) -> None:
    """Seconds in which something can be done.

    Raises:
        BadValue: none, or too many.
    """
    if timeout_s is not None and not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise BadValue(
            f"timeout={timeout_s:g}: write seconds, more than 0 and at most {MAX_TIMEOUT_S:g}"
        )


def seeded(seed: int | None) -> int:
    """The seed that was asked for, else a new one.

    Raises:
        BadValue: it is no seed.
    """
    if seed is None:
        return secrets.randbits(24)
    if not 0 <= seed <= MAX_SEED:
        raise BadValue(f"seed={seed}: write a number from 0 to {MAX_SEED}")
    return seed
