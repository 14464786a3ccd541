"""Run each case once its kernels are compiled and this worker has the GPU lock."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from triton_magics import operators
from triton_magics.harness.compile_ahead import (
    AheadCompilation,
    Form,
    input_forms,
    local_target,
)
from triton_magics.harness.correctness.near_inputs import switched_case
from triton_magics.harness.correctness.shape_classes import MAX_FULL_COLUMNS
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.process.reporter import Reporter
from triton_magics.model import BESIDE, Case

LOCK_PATIENCE_S = 0.25  # the GPU lock is kept this long while a case is compiled
# For all extents. A full plan refuses blocks that compile for longer than 2 s of a quick core, so
# it seldom waits; a thorough one compiles a row of 151,936 columns in a block, which takes 52 s.
EXTENTS_COMPILE_S, THOROUGH_COMPILE_S = 6.0, 20.0
MAX_STRETCH = 10.0
LARGE_BLOCK = "its kernel has a block so large that it compiles for long; --thorough compiles it"


@dataclass
class CaseScheduler:
    """Run the first cases while the kernels of the later ones are compiled.

    Other workers can time on the GPU while this one waits for a compiler.
    """

    subject: Subject
    report: Reporter
    lock: Callable[[], AbstractContextManager[None]]
    ahead: AheadCompilation | None
    forms: list[Form]
    is_thorough: bool = False
    extents_limit_s: float = EXTENTS_COMPILE_S
    _lock_stack: ExitStack = field(default_factory=ExitStack)
    _has_lock: bool = False
    _waited_s: float = 0.0  # for kernels of extents
    _is_beside: bool = False  # the last case that ran

    @classmethod
    @contextmanager
    def create(
        cls,
        subject: Subject,
        cases: Sequence[Case],
        report: Reporter,
        lock: Callable[[], AbstractContextManager[None]],
        survey: Mapping[str, Any] | None = None,
    ) -> Iterator[CaseScheduler]:
        """Start compiling all cases if there is a GPU; stop and release the lock at the end.

        With an order for a survey, a compile process makes that first.
        """
        job, ahead = subject.job, None
        forms = input_forms(c for c in cases if not c.extent)
        if not subject.is_interpreted and subject.runtime.compiles_ahead:
            ahead = AheadCompilation(
                job.op, job.version, input_forms(cases), local_target(),
                later=switched_forms(subject.op, cases), brief=brief_forms(cases, job.plan),
                first=survey,
            )  # fmt: skip
            subject.ahead.append(ahead)
        is_thorough = job.plan == "thorough"
        limit_s = extents_compile_s(is_thorough=is_thorough)
        scheduler = cls(subject, report, lock, ahead, forms, is_thorough, limit_s)
        try:
            with scheduler._lock_stack:
                yield scheduler
        finally:
            if ahead:
                ahead.end(within_s=0.0)  # a form that is unfinished now was worth no wait before

    def has_surveyed(self, *, within_s: float) -> bool | None:
        """Return whether the survey is made by then; None if no compile process makes it."""
        return self.ahead.has_done_first(within_s=within_s) if self.ahead else None

    def add(self, cases: Sequence[Case]) -> None:
        """Start compiling further cases, if there is a GPU."""
        if self.ahead:
            brief = brief_forms(cases, self.subject.job.plan)
            forms = [*input_forms(cases), *switched_forms(self.subject.op, cases)]
            self.ahead.add(forms, brief=brief)

    def compiled_first(self, cases: Sequence[Case]) -> list[Case]:
        """Return the cases that were compiled before, then the others, each group in its order.

        Those beside the design stay together: a long shape comes before a short one there.
        """
        ahead = self.ahead
        if ahead is None:
            return list(cases)
        late = {case for case in cases if not ahead.was_compiled(input_forms([case])[0])}
        beside = {case for case in cases if case.shape_class == BESIDE}
        late |= beside if beside & late else set()
        return sorted(cases, key=late.__contains__)

    def take_next(self, left: list[Case]) -> Case:
        """Remove and return the first case, or a compiled one while its kernel is being compiled.

        Those beside the design keep their order, and nothing comes between them.
        """
        place = next(filter(partial(self._is_compiled, left), self._movable(left)), 0)
        case = left.pop(place)
        self._is_beside = case.shape_class == BESIDE
        return case

    def _movable(self, left: Sequence[Case]) -> Iterable[int]:
        """Return the places of the cases that may come next."""
        if self.ahead is None or not self.ahead.has_processes:
            return ()
        first = (0,)
        if self._is_beside and left[0].shape_class == BESIDE:
            return first
        others = (i for i, c in enumerate(left) if i and c.shape_class != BESIDE and not c.extent)
        return itertools.chain(first, others)

    def _is_compiled(self, left: Sequence[Case], place: int) -> bool:
        assert self.ahead
        return self.ahead.is_finished(*input_forms([left[place]]), within_s=0.0)

    def skip_reason(self, case: Case) -> str | None:
        """Return why an extent is skipped, after waiting for its kernel; None for other cases."""
        if not case.extent or self.ahead is None:
            return None
        started_s = time.monotonic()
        (form,) = input_forms([case])
        if not self.is_thorough and _is_wide_extent(case) and self.ahead.is_left(form):
            return "no process compiles its kernel ahead; --thorough compiles it"
        left_s = max(0.0, self.extents_limit_s - self._waited_s)
        delayed = self.ahead.is_delayed(form, within_s=left_s)
        self._waited_s += time.monotonic() - started_s
        if delayed:
            limit_s = f"{self.extents_limit_s:.3g} s"
            return f"its kernel is not compiled after {limit_s} of waiting for extents"
        return LARGE_BLOCK if self.ahead.is_refused(form) else None

    def wait_until_ready(self, case: Case) -> None:
        """Wait until a case is compiled, and hold the GPU lock."""
        patience_s = LOCK_PATIENCE_S if self._has_lock else 0.0
        (form,) = input_forms([case])
        if self.ahead and not self.ahead.is_finished(form, within_s=patience_s):
            # Without compile processes, threads compile several forms in little more time than one.
            at_once = self._has_lock and not self.ahead.has_processes
            self._lock_stack.close()
            self._has_lock = False
            self.report.stage("compiling", patience_s=self.subject.job.compile_s)
            forms = self.forms if at_once else [form]
            self.ahead.wait(self.subject.calls.compile_forms, forms)
        if not self._has_lock:
            self._lock_stack.enter_context(self.lock())
            self._has_lock = True


def switched_forms(op: operators.Op, cases: Iterable[Case]) -> list[Form]:
    """Return the forms of the calls with the other value of a switch, within series on cases."""
    others = (switched_case(op, case) for case in cases)
    return input_forms(case for case in others if case is not None)


def brief_forms(cases: Sequence[Case], plan: str) -> set[Form]:
    """Return the forms of very wide rows on which compilers must not work for long."""
    if plan == "thorough":
        return set()
    needed = {*input_forms(case for case in cases if not _is_wide_extent(case))}
    return {*input_forms(cases)} - needed


def _is_wide_extent(case: Case) -> bool:
    """Return whether a case is of a row that is too wide for a block of a full plan."""
    return bool(case.extent) and case.shape[-1] > MAX_FULL_COLUMNS


def extents_compile_s(*, is_thorough: bool) -> float:
    """Return how long the cases may wait for kernels of extents, in all, seconds.

    Longer where more processes run than there are cores: other programs don't change a verdict.
    """
    stretch = os.getloadavg()[0] / (os.cpu_count() or 1)
    limit_s = THOROUGH_COMPILE_S if is_thorough else EXTENTS_COMPILE_S
    return limit_s * min(max(stretch, 1.0), MAX_STRETCH)
