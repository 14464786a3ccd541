"""A case runs when its kernels are compiled and it is this worker's turn on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from triton_magics.model import Case
from triton_magics.worker.precompile import Ahead, Target, forms_of
from triton_magics.worker.report import Reporter
from triton_magics.worker.subject import Subject

BRIEFLY_S = 0.25  # for which others wait with us until a case is compiled


@dataclass
class Turns:
    """The first cases run while the kernels of the last ones are compiled.

    Others may time on the GPU while this waits for a compiler.
    """

    subject: Subject
    report: Reporter
    lock: Callable[[], AbstractContextManager[None]]
    ahead: Ahead | None
    _held: ExitStack = field(default_factory=ExitStack)
    _ours: bool = False

    @classmethod
    @contextmanager
    def beginning(
        cls,
        subject: Subject,
        cases: Sequence[Case],
        report: Reporter,
        lock: Callable[[], AbstractContextManager[None]],
    ) -> Iterator[Turns]:
        """Has all cases compiled, on a GPU; at the end nothing is held or compiled any more."""
        job, ahead = subject.job, None
        if not subject.interpreted:
            ahead = Ahead(job.op, job.version, forms_of(cases), Target.here())
        turns = cls(subject, report, lock, ahead)
        try:
            with turns._held:
                yield turns
        finally:
            if ahead:
                ahead.end(within_s=BRIEFLY_S)

    def ready_first(self, cases: Sequence[Case]) -> list[Case]:
        """Those that were compiled before, then the others; each in their order."""
        ahead = self.ahead
        if ahead is None:
            return list(cases)
        return sorted(cases, key=lambda case: not ahead.was_done(forms_of([case])[0]))

    def wait_for(self, case: Case) -> None:
        """Until a case can run."""
        patience_s = BRIEFLY_S if self._ours else 0.0
        (form,) = forms_of([case])
        if self.ahead and not self.ahead.is_done(form, within_s=patience_s):
            forms = None if self._ours else [form]
            self._held.close()
            self._ours = False
            self.report.stage("compiling", patience_s=self.subject.job.compile_s)
            self.ahead.wait(self.subject.op, self.subject.version, forms)
        if not self._ours:
            self._held.enter_context(self.lock())
            self._ours = True
