"""Cases without elements. A version may raise an error there: a limit of it, no wrong answer."""

from __future__ import annotations

import torch

from triton_magics import operators
from triton_magics.harness.correctness.call_record import outputs_of
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.model import Case

NO_ELEMENTS, NO_TERMS = "no elements", "no terms"
_PRODUCT_RANK = 3  # rows, columns, terms
_CPU = torch.device("cpu")


def plan_empty_cases(op: operators.Op, plain: Case) -> list[Case]:
    """Return the plain case without elements, and that of a product without terms, which is zeros.

    Those that the reference refuses are left out.
    """
    if not op.shapes:
        return []
    cases = [plain.evolve(shape=(0, *plain.shape[1:]), extent=NO_ELEMENTS)]
    if op.op_class == "matmul" and len(plain.shape) == _PRODUCT_RANK:
        cases.append(plain.evolve(shape=(*plain.shape[:-1], 0), extent=NO_TERMS))
    return [case for case in cases if _is_defined(op, case)]


def limit_of_values(expected: tuple[torch.Tensor, ...]) -> str | None:
    """Return why other values than these are a limit: a mean of nothing is not defined."""
    if all(bool(x.double().isfinite().all()) for x in expected):
        return None
    return "other values than the reference's, which are not finite"


def _is_defined(op: operators.Op, case: Case) -> bool:
    """Return whether inputs can be drawn, and the reference computes something from them."""
    try:
        with torch.no_grad():
            outputs_of(op.reference(*make_pristine(op, case, _CPU)))
    except Exception:  # noqa: BLE001 (the op's own code, which may need a GPU)
        return False
    return True
