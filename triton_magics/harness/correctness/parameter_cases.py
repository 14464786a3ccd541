"""Cases with values of an op's numbers that it does not declare: 0, and values near to others."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from triton_magics import operators
from triton_magics.harness.correctness.case_numbers import is_finite_at
from triton_magics.model import NORMAL, Case

TINY = "tiny"
_NEAR = 1 - 2**-13  # times a number: the same in three digits
_SMALL = 0.4  # times the smallest one, 1e-6 as a rule: 0 in six decimals


def parameter_cases(
    op: operators.Op, dtypes: Sequence[str], make_case: Callable[..., Case]
) -> list[Case]:
    """Return the cases; what is added to values shows beside tiny ones.

    - 0 for each number that is never declared as 0, where the op is finite: `eps or 1e-5` takes 0
      for a parameter that is not given.
    - Values that differ little, one after the other, in a shape and a dtype: a version may keep
      what it makes of a number, and find it by a few digits or decimals.
    """
    first = {name: values[0] for name, values in op.scalars.items()}
    regimes = [r for r in (NORMAL, TINY) if r not in op.skip_values]
    added = [name for name, declared in op.scalars.items() if _is_added(op, name, declared)]
    turns = itertools.cycle(dtypes)
    chosen = [
        (name, 0.0, regime, next(turns)) for name, regime in itertools.product(added, regimes)
    ]
    for name, declared in op.scalars.items():
        sizes = [abs(v) for v in declared if type(v) is float and v]
        near = [sizes[0], sizes[0] * _NEAR] if sizes else []
        near += [0.0, min(sizes) * _SMALL] if name in added else []
        regime = TINY if name in added and TINY in regimes else NORMAL
        chosen += [(name, value, regime, dtypes[0]) for value in near]
    return [
        make_case(
            "odd", 0, dtype=dtype, regime=regime, scalars=tuple({**first, name: value}.items())
        )
        for name, value, regime, dtype in dict.fromkeys(chosen)
    ]


def _is_added(op: operators.Op, name: str, declared: Sequence[object]) -> bool:
    """Return whether a number is never 0 but may be, such as one that is added to a variance."""
    is_number = all(type(value) is float and value for value in declared)
    return is_number and is_finite_at(op, name, 0.0)
