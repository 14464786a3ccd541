"""Calls of a version in the subject process: the judge's half, and what that process executes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from triton_magics.execution.job_refs import OpRef, VersionRef
from triton_magics.harness.compile_ahead import Form
from triton_magics.harness.correctness.call_record import (
    CallFailure,
    CallOptions,
    CallRecord,
    CallSeries,
    DataFlow,
    DryRun,
    Meanwhile,
    SeriesRecord,
    VersionRaised,
    all_outputs,
    outputs_of,
)
from triton_magics.harness.correctness.guard_bands import GuardedMemory
from triton_magics.harness.correctness.guarded_call import LocalCalls
from triton_magics.harness.correctness.launch_relations import LaunchSurvey
from triton_magics.harness.correctness.output_forms import (
    OutputForm,
    Placing,
    container_of,
    form_of,
    rebuild_value,
)
from triton_magics.harness.load import LoadError, load_version, make_kernel_error
from triton_magics.harness.process.changed_names import NameRecord
from triton_magics.harness.process.device import kernel_runtime
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.process.fork_server import one_thread
from triton_magics.harness.process.shared_memory import round_up
from triton_magics.harness.process.subject_link import SubjectLink
from triton_magics.languages.kernel_runtime import Launches
from triton_magics.model import Case, KernelError, Value

MODULE = __name__


class VersionNotLoaded(Exception):
    """The version's file could not be imported in the subject process."""

    def __init__(self, error: KernelError) -> None:
        super().__init__(error.message)
        self.error = error


class LoadReply(Value):
    """A version was loaded, or an error says why not."""

    error: KernelError | None = None
    tunes_itself: bool = False


class CallReply(Value):
    """Outputs and facts of a call; see `CallRecord`.

    Attributes:
        container: `tuple` or `list` of the outputs, or empty where one value was returned.
    """

    failure: CallFailure | None = None
    container: str = ""
    outputs: tuple[OutputForm, ...] = ()
    names: tuple[str, ...] = ()
    grids: tuple[tuple[int, ...], ...] = ()
    torch_ops: tuple[str, ...] = ()
    flow: DataFlow = DataFlow()
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

    @property
    def launches(self) -> Launches:
        """Return the launches that were observed."""
        return Launches([*self.names], [*self.grids], [*self.torch_ops])


class Done(Value):
    """The end of a request without a result."""


class Lines(Value):
    """Lines of the version's file."""

    lines: tuple[int, ...]


# ------------------------------------------------------------------------------------- judge


class RemoteCalls:
    """Calls of one version in the subject process."""

    def __init__(self, link: SubjectLink, ref: VersionRef, op: OpRef, device: torch.device) -> None:
        """Load the version there.

        Raises:
            VersionNotLoaded: its module can't be imported, or has no such entry.
        """
        self._link = link
        self._device = device
        reply = link.request(f"{MODULE}:load", LoadReply, ref=ref, op=op, device=device)
        if reply.error is not None:
            raise VersionNotLoaded(reply.error)
        self.tunes_itself = reply.tunes_itself

    def call(
        self,
        arguments: tuple[Any, ...],
        guards: Sequence[GuardedMemory],
        options: CallOptions,
        meanwhile: Meanwhile | None = None,
    ) -> CallRecord:
        """Call the version once.

        Raises:
            VersionRaised: it raised.
        """
        room_bytes = round_up(options.room_bytes) + 16 * round_up(1)
        room = self._link.memory.allocate(room_bytes, self._device)
        reply = self._link.request(
            f"{MODULE}:call", CallReply, copy_back=bool(options.mutates), meanwhile=meanwhile,
            arguments=arguments, guards=tuple(guards), options=options, room=room,
        )  # fmt: skip
        if reply.failure is not None:
            raise VersionRaised(reply.failure, reply.launches)
        value = rebuild_value(reply.container, reply.outputs, room)
        return CallRecord(
            value=value,
            outputs=all_outputs(value, arguments, options.mutates),
            flow=reply.flow,
            launches=reply.launches,
            late_work=reply.late_work,
            damage=reply.damage,
            outside=reply.outside,
            race=reply.race,
            shared_inputs=reply.shared_inputs,
            placings=reply.placings,
            unwritten=reply.unwritten,
            takes_default_dtype=reply.takes_default_dtype,
            left_behind=reply.left_behind,
            replaced=reply.replaced,
        )

    def call_series(self, series: CallSeries, meanwhile: Meanwhile | None = None) -> SeriesRecord:
        """Call the version many times."""
        function = f"{MODULE}:call_series"
        return self._link.request(function, SeriesRecord, meanwhile=meanwhile, series=series)

    def compile_forms(self, forms: Sequence[Form]) -> None:
        """Compile the kernels of these shapes and dtypes."""
        self._link.request(f"{MODULE}:compile_forms", Done, forms=tuple(forms))

    def unreached_lines(self) -> tuple[int, ...]:
        """Return the lines of the version's file that no call has run, each of a statement."""
        return self._link.request(f"{MODULE}:unreached_lines", Lines).lines

    def load_again(self) -> None:
        """Load the version again: what it has kept between calls is gone."""
        self._link.request(f"{MODULE}:load_again", Done)

    def dry_run(self, arguments: tuple[Any, ...]) -> DryRun:
        """Return the facts of a call whose kernels do not run."""
        return self._link.request(f"{MODULE}:dry_run", DryRun, arguments=arguments)

    def survey_launches(self, cases: Sequence[Case], limit_s: float) -> LaunchSurvey:
        """Return what the launches for these cases look like; none of them is made."""
        function = f"{MODULE}:survey"
        return self._link.request(function, LaunchSurvey, cases=tuple(cases), limit_s=limit_s)


# ------------------------------------------------------------------------- the subject process
# With one thread of torch on the CPU, as in the judge: more of them spin on small tensors.

MAX_NAMES = 20
_loaded: list[LocalCalls] = []


@functools.cache
def name_record() -> NameRecord:
    """Return the names of shared modules; the first call, before any version, records them."""
    return NameRecord()


@one_thread()
def load(ref: VersionRef, op: OpRef, device: torch.device) -> LoadReply:
    """Load a version; calls are its own from now on."""
    _loaded.clear()
    names = name_record()
    kernel_runtime(ref.language)  # its modules are imported, and recorded, before the version's
    names.accept()
    try:
        with fake_gpu(device):
            version = load_version(ref)
    except LoadError as error:
        return LoadReply(error=make_kernel_error(error, ref))
    _loaded.append(LocalCalls(version, op, device, names=names))
    return LoadReply(tunes_itself=_loaded[0].tunes_itself)


@one_thread()
def call(
    arguments: tuple[Any, ...],
    guards: tuple[GuardedMemory, ...],
    options: CallOptions,
    room: torch.Tensor,
) -> CallReply:
    """Call the version, and copy its outputs into the room."""
    launches = Launches()
    try:
        record = _loaded[0].call(arguments, guards, options)
        launches = record.launches
        forms = _loaded[0].describe_failures(lambda: _hand_over(record.value, room), launches)
    except VersionRaised as raised:
        return CallReply(failure=raised.failure, **_facts(raised.launches))
    return CallReply(
        container=container_of(record.value),
        outputs=forms,
        flow=record.flow,
        late_work=record.late_work,
        damage=record.damage,
        outside=record.outside,
        race=record.race,
        shared_inputs=record.shared_inputs,
        placings=record.placings,
        unwritten=record.unwritten,
        takes_default_dtype=record.takes_default_dtype,
        left_behind=record.left_behind,
        replaced=record.replaced[:MAX_NAMES],
        **_facts(launches),
    )


@one_thread()
def call_series(series: CallSeries) -> SeriesRecord:
    """Call the version many times, and copy its outputs into the series' memory."""
    record = _loaded[0].call_series(series)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return record


@one_thread()
def compile_forms(forms: tuple[Form, ...]) -> Done:
    """Compile the kernels of these shapes and dtypes."""
    _loaded[0].compile_forms(forms)
    return Done()


@one_thread()
def load_again() -> Done:
    """Load the version again: what it has kept between calls is gone."""
    _loaded[0].load_again()
    return Done()


def unreached_lines() -> Lines:
    """Return the lines of the version's file that no call has run, each of a statement."""
    return Lines(lines=_loaded[0].unreached_lines())


@one_thread()
def dry_run(arguments: tuple[Any, ...]) -> DryRun:
    """Return the facts of a call whose kernels do not run; nothing of it stays in this process."""
    return _loaded[0].dry_run(arguments)


@one_thread()
def survey(cases: tuple[Case, ...], limit_s: float) -> LaunchSurvey:
    """Return what the launches for these cases look like; nothing of it stays in this process."""
    return _loaded[0].survey_launches(cases, limit_s)


def _facts(launches: Launches) -> dict[str, Any]:
    return {
        "names": tuple(launches.names),
        "grids": tuple(launches.grids),
        "torch_ops": tuple(launches.torch_ops),
    }


@torch.no_grad()
def _hand_over(value: Any, room: torch.Tensor) -> tuple[OutputForm, ...]:
    """Copy each output that fits into the room, one behind the other."""
    forms, start = [], 0
    for output in outputs_of(value):
        form = form_of(output)
        end = start + form.n_bytes if form.dtype else 0
        if form.dtype and output.device == room.device and end <= room.numel():
            dtype = getattr(torch, form.dtype)
            room[start:end].view(dtype).reshape(form.shape).copy_(output)
            form = form.evolve(is_copied=True)
            start += round_up(form.n_bytes)
        forms.append(form)
    if room.is_cuda:
        torch.cuda.synchronize()
    return tuple(forms)


__all__ = ["RemoteCalls", "VersionNotLoaded"]
