"""Make the inputs of the next case while the version's process works on this one."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from triton_magics.model import Case

MAX_ELEMENTS = 2**22  # the product of a shape's sizes: two cases are in memory at once


@dataclass
class InputsAhead:
    """The contiguous inputs of the next case.

    Attributes:
        make: returns those of a case, or raises `UserFault`.
        next_case: the case that follows; None if that is not known.
    """

    make: Callable[[Case], tuple[Any, ...]]
    next_case: Case | None = None
    _ready: tuple[Case, tuple[Any, ...]] | None = None

    def prepare(self) -> None:
        """Make them, unless they are large; a failure is raised where they are needed."""
        case, self.next_case = self.next_case, None
        is_ready = self._ready is not None and self._ready[0] == case
        if case is not None and not is_ready and math.prod(case.shape) <= MAX_ELEMENTS:
            with suppress(Exception):
                self._ready = case, self.make(case)

    def take(self, case: Case) -> tuple[Any, ...]:
        """Return the inputs of a case: those made ahead once, else new ones.

        Raises:
            UserFault: the op's `make_inputs` raised.
        """
        ready = self._ready
        if ready is None or ready[0] != case:  # a check of this case makes others
            return self.make(case)
        self._ready = None
        return ready[1]
