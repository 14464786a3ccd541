"""A call of a version as the judge sees it: outputs and facts, but never the version's code.

The process that calls a version and the process that judges it need not be the same. Everything
here can cross between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from triton_magics.harness.compile_ahead import Form
from triton_magics.harness.correctness.guard_bands import GuardedMemory
from triton_magics.harness.correctness.launch_relations import LaunchSurvey
from triton_magics.harness.correctness.output_forms import OutputForm, Placing
from triton_magics.harness.correctness.torch_operations import Operation, Site
from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import Case, KernelError, Value


@dataclass(frozen=True)
class CallOptions:
    """Options of a call of a version.

    Attributes:
        guard: put new memory between guard bands, poison it, and check bounds.
        suppress: let every kernel launch do nothing.
        trace: record torch's operations, as a guarded or suppressed call does.
        poison: poison the results of torch's operations at this site.
        hide_from_host: mask all memory, but for so many elements, except while a launch or a torch
            operation runs.
        default_dtype: torch's default dtype during the call; empty: as it is.
        fix_seed: give the call the same random numbers of torch as any other such call.
        keep: keep the outputs alive; a later series must not return their memory.
        mutates: positions of the arguments that the op changes.
        room_bytes: size of the reference's outputs; larger outputs are not handed over.
        limit_s: CPU time after which an interpreter ends a guarded call; None: no limit.
    """

    guard: bool = False
    suppress: bool = False
    trace: bool = False
    poison: Site | None = None
    hide_from_host: int | None = None
    default_dtype: str = ""
    fix_seed: bool = False
    keep: bool = False
    mutates: tuple[int, ...] = ()
    room_bytes: int = 0
    limit_s: float | None = None

    @property
    def observes(self) -> bool:
        """Return whether launches, and the lines that run, are recorded."""
        return self.guard or self.suppress or self.fix_seed


class DataFlow(Value):
    """Facts on the flow of data in a call.

    Attributes:
        operations: of torch, that compute; of a traced call only.
        is_poisoned: every result at the site was poisoned; a size, for example, can't be.
        threads: names of the version's other threads; of a call with masked memory only.
    """

    operations: tuple[Operation, ...] = ()
    is_poisoned: bool = True
    threads: tuple[str, ...] = ()


class CallFailure(Value):
    """An exception of a version's code.

    Attributes:
        error: it as a value.
        text: its own message.
        refuses: it is a stated limit: raised in the version's file, before any launch.
        out_of_memory: it says that the GPU's memory ran out.
    """

    error: KernelError
    text: str
    refuses: bool = False
    out_of_memory: bool = False


class VersionRaised(Exception):
    """The version raised; `failure` describes it, `launches` came before it."""

    def __init__(self, failure: CallFailure, launches: Launches) -> None:
        super().__init__(failure.error.message)
        self.failure = failure
        self.launches = launches


@dataclass(frozen=True)
class CallRecord:
    """One call of a version.

    Attributes:
        value: the return value.
        outputs: the return value as a tuple, then the inputs in the op's MUTATES.
        flow: the flow of data.
        launches: the kernels that ran, and torch's operations beside them.
        late_work: a message on work that continued after the return.
        damage: a message for each tensor of the wrapper whose guard bands were overwritten.
        outside: the first access outside a tensor; only an interpreter sees one.
        race: the first race of two programs of a launch; only an interpreter sees one.
        shared_inputs: positions of the arguments that share memory with a returned tensor.
        placings: how the elements of each returned tensor lie in memory.
        unwritten: elements of each output that no kernel has stored to and that were never set;
            only an interpreter counts them.
        takes_default_dtype: the wrapper made a tensor of torch's default dtype, as it named none.
        left_behind: a message on a setting that the call changed.
        replaced: functions of torch, Python or the harness that the version replaced.
    """

    value: Any
    outputs: tuple[Any, ...]
    flow: DataFlow
    launches: Launches = field(default_factory=Launches)
    late_work: str | None = None
    damage: tuple[str, ...] = ()
    outside: KernelError | None = None
    race: KernelError | None = None
    shared_inputs: tuple[int, ...] = ()
    placings: tuple[Placing, ...] = ()
    unwritten: tuple[int, ...] = ()
    takes_default_dtype: bool = False
    left_behind: str | None = None
    replaced: tuple[str, ...] = ()


class DryRun(Value):
    """A call whose kernels did not run.

    Attributes:
        programs: that it launches; 0: unknown.
        operations: of torch, that compute.
    """

    programs: int = 0
    operations: tuple[Operation, ...] = ()


FEW_CALLS = 4  # of each series
MOST_OUTPUTS = 1_000  # of a call


@dataclass(frozen=True)
class Turn:
    """One call of a series.

    Attributes:
        content: index of the contents of its inputs.
        is_renewed: its inputs are new tensors, not those of the case with new contents.
        in_last: its inputs are the tensors of the call before, with new contents.
    """

    content: int
    is_renewed: bool = False
    in_last: bool = False


@dataclass(frozen=True)
class CallSeries:
    """Many calls of a version on changing contents, whose outputs are all kept until the end.

    Attributes:
        arguments: of the case; they get the contents, and the first ones again after the last call.
        contents: values of all inputs, by number.
        turns: the calls.
        at_return: for each output the memory of its values when each call returned; the calls are
            its first dimension.
        at_end: likewise, after the last call.
        returns_tensor: the version returns one tensor, not a tuple or list.
        mutates: positions of the arguments that the op changes.
        watches: look for unfinished work after each call, not only after the last.
        limit_s: CPU time after which the series ends, once it has `FEW_CALLS` calls.
    """

    arguments: tuple[Any, ...]
    contents: tuple[tuple[Any, ...], ...]
    turns: tuple[Turn, ...]
    at_return: tuple[Any, ...]
    at_end: tuple[Any, ...]
    returns_tensor: bool = True
    mutates: tuple[int, ...] = ()
    watches: bool = True
    limit_s: float | None = None


class SeriesRecord(Value):
    """Facts of a series of calls; it ends with the first call that has one.

    Attributes:
        n_calls: calls that returned outputs of the right form.
        failure: the exception of the next one.
        container, forms: its return value, where its form is another.
        late_work: a message on work that continued after its return.
        shares_input: the last one returned memory of an input.
        reuses_memory: the last one returned memory of an earlier output.
        overwritten: a message on a setting that a call sets, whatever it was.
        keeps: `inputs` or `outputs`: one of nearly every call is alive after the last one.
    """

    n_calls: int
    failure: CallFailure | None = None
    container: str = ""
    forms: tuple[OutputForm, ...] = ()
    late_work: str | None = None
    shares_input: bool = False
    reuses_memory: bool = False
    overwritten: str | None = None
    keeps: str | None = None

    @property
    def has_other_form(self) -> bool:
        """Return whether the next call returned another form; that of `()` has no part."""
        return bool(self.forms or self.container)


def outputs_of(value: Any) -> tuple[Any, ...]:
    """Return a call's return value as a tuple."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def cut_outputs(value: Any) -> Any:
    """Return a call's return value, with the first of very many tensors only.

    No op has so many, so they are wrong already, and a million take long to record.
    """
    is_long = isinstance(value, tuple | list) and len(value) > MOST_OUTPUTS
    return value[:MOST_OUTPUTS] if is_long else value


def all_outputs(
    value: Any, arguments: tuple[Any, ...], mutates: tuple[int, ...]
) -> tuple[Any, ...]:
    """Return the outputs of a call, then the inputs that the op changes."""
    returned = () if value is None and mutates else outputs_of(value)
    return (*returned, *(arguments[i] for i in mutates))


Meanwhile = Callable[[], None]


class VersionCalls(Protocol):
    """Calls one version, in this process or in another one."""

    def call(
        self,
        arguments: tuple[Any, ...],
        guards: Sequence[GuardedMemory],
        options: CallOptions,
        meanwhile: Meanwhile | None = None,
    ) -> CallRecord:
        """Call the version once.

        Args:
            arguments, guards, options: of the call.
            meanwhile: called once if another process calls the version, while it does.

        Raises:
            VersionRaised: it raised.
        """

    def call_series(self, series: CallSeries, meanwhile: Meanwhile | None = None) -> SeriesRecord:
        """Call the version many times, and copy the outputs into the series' memory."""

    def compile_forms(self, forms: Sequence[Form]) -> None:
        """Compile the kernels of these shapes and dtypes."""

    def unreached_lines(self) -> tuple[int, ...]:
        """Return the lines of the version's file that no call has run, each of a statement."""

    def dry_run(self, arguments: tuple[Any, ...]) -> DryRun:
        """Return the facts of a call whose kernels do not run.

        The version's process keeps nothing of the call: what a version keeps for later calls would
        be unset memory. Without a GPU only.
        """

    def survey_launches(self, cases: Sequence[Case], limit_s: float) -> LaunchSurvey:
        """Return what the launches for these cases look like; none of them is made.

        The version's process keeps nothing of it. After so many seconds no further case is called.
        """

    def load_again(self) -> None:
        """Load the version again: what it has kept between calls is gone."""

    @property
    def tunes_itself(self) -> bool:
        """Return whether a kernel times several configurations on its first call."""


__all__ = [
    "CallFailure",
    "CallOptions",
    "CallRecord",
    "CallSeries",
    "DataFlow",
    "Meanwhile",
    "SeriesRecord",
    "Turn",
    "VersionCalls",
    "VersionRaised",
    "all_outputs",
    "outputs_of",
]
