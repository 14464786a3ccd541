"""The part of the corpus that is ordered by classes: right and wrong kernels of each class.

A class is a folder of `kernels/classes`. A kernel's docstring begins with the reason, then has
fields: `op`, `status` (`passed` or `failed`), and for a wrong kernel `cause`, one of `CAUSES`.
`held_out: yes` keeps it out of the figures by which checks are developed; `needs: gpu, …` names
why the interpreter can't show the fault. `round: second`, `round: third` and `round: fourth` are
for those written against the checks of 2026-11-24, 2026-11-26 and 2026-11-27, from their
description for users alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"
CLASSES_FOLDER = KERNELS / "classes"
CLASSES = {
    "layouts": "layouts per tensor",
    "combinations": "faults where two conditions meet",
    "extents": "large extents",
    "special_values": "structured special values",
    "torch_work": "torch computes",
    "judge": "the judge is in reach",
    "many_calls": "state over many calls",
    "randomness": "random draws",
    "leftovers": "state that a call leaves behind",
}
# Plain codes of true causes, to compare with the code of an explanation.
CAUSES = (
    "call_count", "cancellation", "ignored_argument", "int_overflow", "missing_maximum",
    "missing_mask", "missing_rescale", "nan_lost", "overflow", "reused_memory", "shared_draws",
    "shifted_stream", "side_effect", "stale_cache", "stale_state", "tampering", "torch_computed",
    "truncated_extent", "wrong_fill", "wrong_formula", "wrong_rate", "wrong_stride",
)  # fmt: skip


@dataclass(frozen=True)
class ClassKernel:
    """A kernel of a class, as its docstring describes it.

    Attributes:
        cause: of the fault; None for a right kernel.
        needs: the only device that shows the fault, `gpu`; None: any.
        operator: of the mutation that made it; None: written by hand.
        round: `first`, or a later one that was written against the checks of its time.
    """

    path: Path
    class_name: str
    op: str
    is_right: bool
    reason: str
    cause: str | None
    held_out: bool
    needs: str | None
    operator: str | None
    round: str = "first"


def read_kernel(path: Path) -> ClassKernel:
    """Read a kernel's docstring.

    Raises:
        ValueError: a field is missing, or its value unknown.
    """
    header = path.read_text().split('"""')[1]
    fields = dict(re.findall(r"^(\w+): (.+)$", header, re.M))
    status, cause = fields.get("status"), fields.get("cause")
    if status not in ("passed", "failed") or "op" not in fields:
        raise ValueError(f"{path.name}: write `op: NAME` and `status: passed` or `status: failed`")
    if (cause in CAUSES) is (status == "passed"):
        raise ValueError(f"{path.name}: write `cause: …` for a wrong kernel, one of {CAUSES}")
    return ClassKernel(
        path=path,
        class_name=path.parent.name,
        op=fields["op"],
        is_right=status == "passed",
        reason=header.strip().splitlines()[0],
        cause=cause,
        held_out=fields.get("held_out") == "yes",
        needs="gpu" if fields.get("needs", "").startswith("gpu") else None,
        operator=fields.get("operator"),
        round=fields.get("round", "first"),
    )


def is_class_kernel(path: Path) -> bool:
    """Return True for a file in a folder of a class."""
    return path.parent.parent == CLASSES_FOLDER


def class_files() -> list[Path]:
    """Return the files of every class, by class and name; the mutants must have been built."""
    return [p for name in CLASSES for p in sorted((CLASSES_FOLDER / name).glob("*.py"))]
