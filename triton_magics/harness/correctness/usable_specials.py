"""The special values that an op can be checked with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from triton_magics import operators
from triton_magics.harness.correctness.call_record import all_outputs
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.case_values import has_bytes
from triton_magics.harness.correctness.judgement import is_correct
from triton_magics.harness.correctness.special_values import SHARED_VALUES, SPECIALS
from triton_magics.harness.correctness.tolerance import is_floating
from triton_magics.model import Case

_CPU = torch.device("cpu")


def usable_specials(op: operators.Op, dtypes: Sequence[str]) -> Iterator[str]:
    """Yield the names of the special values that mean something for an op in one of the dtypes."""
    for name, special in SPECIALS.items():
        own = special.dtypes or dtypes
        if (
            not {name, *special.parts} & {*op.skip_values}
            and not any(operators.skips(op, special.extreme_of, dtype) for dtype in own)
            and op.op_class in special.op_classes
            and (not special.dtypes or set(special.dtypes) & set(dtypes))
            and (special.is_finite or op.defined_for_nonfinite or special.of_parts)
            and not (special.of_parts and (op.defined_for_nonfinite or not op.independent))
            and (not special.extreme_of or keeps_its_range(op, name))
            and not (name in SHARED_VALUES and op.mutates)
            and (not special.of_bytes or _takes_bytes(op, name))
        ):
            yield name


def keeps_its_range(op: operators.Op, special: str) -> bool:
    """Return whether torch's own output on these values overflows only where it should.

    Tried on a few elements on the CPU. The output of a random op can't be compared.
    """
    dtypes = [d for d in op.dtypes if d in (SPECIALS[special].dtypes or op.dtypes)]
    if op.check is not None:
        return False
    shape = operators.smallest_shape(op)
    small = tuple(min(n, 8) for n in shape)
    cases = [Case(shape=small, dtype=dtype, special=special, seed=1) for dtype in dtypes]
    try:
        return all(_overflows_rightly(op, case) for case in cases)
    except Exception:  # noqa: BLE001 (the op's own code, which may need a GPU)
        return False


def _takes_bytes(op: operators.Op, special: str) -> bool:
    """Return whether the op has 8-bit integers that may have any value: no indices, for example."""
    case = Case(shape=operators.smallest_shape(op), dtype=op.dtypes[0], seed=1)
    try:
        inputs = make_pristine(op, case, _CPU)
        if not any(has_bytes(x) for i, x in enumerate(inputs) if i not in op.structured):
            return False
        with torch.no_grad():
            op.reference(*make_pristine(op, case.evolve(special=special), _CPU))
    except Exception:  # noqa: BLE001 (the op's own code)
        return False
    return True


def _overflows_rightly(op: operators.Op, case: Case) -> bool:
    inputs = make_pristine(op, case, _CPU)
    doubled = tuple(x.double() if is_floating(x) else x for x in inputs)
    with torch.no_grad():
        got, exact = (all_outputs(op.reference(*x), x, op.mutates) for x in (inputs, doubled))
    return all(
        is_correct(g, e, 0.1 * e.abs().nan_to_num(posinf=0.0))
        for g, e in zip(got, exact, strict=True)
        if is_floating(g)
    )
