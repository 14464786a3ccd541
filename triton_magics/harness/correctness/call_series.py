"""Execute a series of calls where the version is loaded: change inputs, call, keep the outputs."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict
from collections.abc import Callable
from time import monotonic, process_time  # now: a version may replace them
from typing import Any

import torch

from triton_magics.harness import layouts
from triton_magics.harness.correctness.call_record import (
    FEW_CALLS,
    CallFailure,
    CallSeries,
    SeriesRecord,
    Turn,
    all_outputs,
    outputs_of,
)
from triton_magics.harness.correctness.output_forms import container_of, form_of

_ALIGNMENT = 64  # bytes, of the memory that torch allocates
MANY_ALIVE = 16  # calls whose tensors live on; a version may keep those of its last ones
WALL_S = 8.0  # of a series: a version may wait in each call, and 20 s of silence end a job


def run_series(
    function: Callable[..., Any],
    series: CallSeries,
    *,
    earlier: tuple[Any, ...],
    find_late_work: Callable[[tuple[Any, ...]], str | None],
    describe: Callable[[BaseException], CallFailure],
) -> SeriesRecord:
    """Call a function for each turn of the series.

    Args:
        function: the version's entry.
        series: the calls; its memory takes their outputs.
        earlier: outputs of earlier calls, whose memory no output may have.
        find_late_work: returns a message on work that continues after a return.
        describe: describes an exception of the function.
    """
    watch = _LifetimeWatch()
    record = _call_all(
        function, series, earlier=earlier, find_late_work=find_late_work, describe=describe,
        watch=watch,
    )  # fmt: skip
    return record.evolve(keeps=watch.find_leak())


class _LifetimeWatch:
    """Weak references to the tensors of the calls, which nobody but a version can keep alive."""

    def __init__(self) -> None:
        self._tensors: dict[tuple[str, int], list[weakref.ref[torch.Tensor]]] = defaultdict(list)

    def add(self, kind: str, values: tuple[Any, ...]) -> None:
        """Watch the tensors of a call, its `inputs` or its `outputs`."""
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor) and value.numel():
                self._tensors[kind, position].append(weakref.ref(value))

    def find_leak(self) -> str | None:
        """Return the kind of a tensor that is alive of nearly all calls; None: there is none."""
        if not any(map(_are_alive, self._tensors.values())):
            return None
        gc.collect()
        return next((k for (k, _), own in sorted(self._tensors.items()) if _are_alive(own)), None)


def _are_alive(tensors: list[weakref.ref[torch.Tensor]]) -> bool:
    n_alive = sum(tensor() is not None for tensor in tensors)
    return n_alive >= MANY_ALIVE and n_alive > 0.9 * len(tensors)


def _call_all(
    function: Callable[..., Any],
    series: CallSeries,
    *,
    earlier: tuple[Any, ...],
    find_late_work: Callable[[tuple[Any, ...]], str | None],
    describe: Callable[[BaseException], CallFailure],
    watch: _LifetimeWatch,
) -> SeriesRecord:
    results: list[tuple[Any, ...]] = []
    addresses = _first_elements(earlier)
    record = SeriesRecord(n_calls=0)
    started_s = process_time(), monotonic()
    arguments = series.arguments
    for number, turn in enumerate(series.turns):
        is_last = number == len(series.turns) - 1 or _is_spent(series, number + 1, started_s)
        arguments = _prepare(series, turn, arguments)
        try:
            value = function(*arguments)
        except BaseException as error:  # noqa: BLE001 (sys.exit() too is the version's result)
            record = SeriesRecord(n_calls=number, failure=describe(error))
            break
        outputs = all_outputs(value, arguments, series.mutates)
        watched = series.watches or is_last
        if fact := _find_fact(series, value, outputs, find_late_work if watched else None):
            record = SeriesRecord(n_calls=number, **fact)
            break
        for memory, output in zip(series.at_return, outputs, strict=True):
            memory[number].copy_(output)
        results.append(_hold(outputs, number))
        if number % 2 and not series.mutates:
            watch.add("outputs", outputs)
        if turn.is_renewed:
            watch.add("inputs", arguments)
        own = _first_elements(outputs_of(value))
        shares_input = bool(_storages(outputs_of(value)) & _storages(arguments))
        if not series.mutates and (shares_input or own & addresses):
            record = SeriesRecord(
                n_calls=number + 1, shares_input=shares_input, reuses_memory=not shares_input
            )
            break
        addresses |= own
        record = SeriesRecord(n_calls=number + 1)
        if is_last:
            break
    _keep_final(series, results)
    return record


def _hold(outputs: tuple[Any, ...], number: int) -> tuple[Any, ...]:
    """Return what keeps the outputs of a call: themselves, or after every second one their memory.

    A version may use the memory of a tensor again when nobody holds that tensor. A caller may still
    hold a part of it, an array of NumPy for example.
    """
    return tuple(x.data for x in outputs) if number % 2 else outputs


def _is_spent(series: CallSeries, n_calls: int, started_s: tuple[float, float]) -> bool:
    """Return whether the series has had its time, and its first calls.

    Args:
        series: its limit counts CPU time.
        n_calls: calls so far.
        started_s: CPU time and clock at the start of the series, seconds.
    """
    cpu_s, wall_s = process_time() - started_s[0], monotonic() - started_s[1]
    is_over = wall_s > WALL_S or (series.limit_s is not None and cpu_s > series.limit_s)
    return is_over and n_calls >= FEW_CALLS


def _prepare(series: CallSeries, turn: Turn, before: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs of a call; an op that changes its inputs always gets new tensors.

    Args:
        series: of the call.
        turn: its own.
        before: the inputs of the call before.
    """
    contents = series.contents[turn.content]
    is_renewed = turn.is_renewed or bool(series.mutates)
    change = _renew if is_renewed else _refill
    tensors = before if turn.in_last and not is_renewed else series.arguments
    return tuple(change(old, new) for old, new in zip(tensors, contents, strict=True))


def _refill(old: Any, new: Any) -> Any:
    """Write the contents into the tensor of the case."""
    if not isinstance(old, torch.Tensor):
        return new
    layouts.write(old, new)
    return old


def _renew(old: Any, new: Any) -> Any:
    """Return a new tensor with the contents, in the layout and the alignment of the old one.

    Its memory is its own and ends with it, as a user's does; the old one lies between guard bands.
    An expanded tensor is part of one that is as large as it looks.
    """
    if not isinstance(old, torch.Tensor) or not old.numel():
        return new
    offset = old.data_ptr() % _ALIGNMENT // old.element_size()
    size = offset + layouts.span(tuple(old.shape), old.stride())
    memory = torch.empty(max(size, old.numel()), dtype=old.dtype, device=old.device)
    tensor = memory.as_strided(old.shape, old.stride(), offset)
    layouts.write(tensor, new)
    return tensor


def _find_fact(
    series: CallSeries,
    value: Any,
    outputs: tuple[Any, ...],
    find_late_work: Callable[[tuple[Any, ...]], str | None] | None,
) -> dict[str, Any] | None:
    """Return what ends the series after a call, as fields of its record."""
    forms = tuple(map(form_of, outputs))
    expected = tuple(form_of(memory[0]) for memory in series.at_return)
    if forms != expected or series.returns_tensor == isinstance(value, tuple | list):
        own = tuple(map(form_of, outputs_of(value)))
        return {"container": container_of(value), "forms": own}
    late_work = find_late_work(outputs) if find_late_work else None
    return {"late_work": late_work} if late_work else None


def _keep_final(series: CallSeries, results: list[tuple[Any, ...]]) -> None:
    """Copy the outputs as they are after the last call, and restore the first contents."""
    for number, outputs in enumerate(results):
        for memory, output in zip(series.at_end, outputs, strict=True):
            memory[number].copy_(output)
    for old, new in zip(series.arguments, series.contents[0], strict=True):
        _refill(old, new)


def _storages(values: tuple[Any, ...]) -> set[int | None]:
    """Return the addresses of the tensors' storages."""
    return {storage_address(value) for value in values} - {None}


def _first_elements(values: tuple[Any, ...]) -> set[int]:
    """Return the addresses of the tensors' first elements; slices of a block have their own."""
    return {value.data_ptr() for value in values if storage_address(value)}


def storage_address(value: Any) -> int | None:
    """Return the address of a tensor's storage; None if it has none."""
    if not isinstance(value, torch.Tensor) or not value.numel() or value.layout != torch.strided:
        return None
    return value.untyped_storage().data_ptr() or None
