"""Change and observe the flow of data in one call of a version."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

from triton_magics.harness.correctness.call_record import CallOptions
from triton_magics.harness.correctness.masked_memory import (
    HostReads,
    MaskedMemory,
    version_threads,
)
from triton_magics.harness.correctness.torch_operations import (
    OperationMode,
    Site,
    computes,
    find_line,
    is_builtin,
    reads_memory,
    run_operation,
    written_tensors,
)


class FlowChange:
    """The changes that options demand of a call's data flow, and their facts.

    Attributes:
        memory: masked memory; None if nothing is hidden.
        is_poisoned: every result at the site was poisoned.
        threads: names of the other threads of a call with masked memory.
    """

    def __init__(self, options: CallOptions, path: str) -> None:
        self._readable = options.hide_from_host or 0
        self.memory = None if options.hide_from_host is None else MaskedMemory(self._readable)
        self.threads: dict[str, None] = {}
        self._options = options
        self._poison = PoisonMode(options.poison, path) if options.poison else None

    @property
    def is_poisoned(self) -> bool:
        """Return whether every result at the site was poisoned."""
        return self._poison is None or self._poison.is_complete

    @contextlib.contextmanager
    def applied(self, arguments: tuple[Any, ...]) -> Iterator[None]:
        """Change the flow of a call on these arguments within this context."""
        with contextlib.ExitStack() as stack:
            if self._options.fix_seed:
                stack.enter_context(_fixed_seed())
            if self._poison is not None:
                stack.enter_context(self._poison)
            if self.memory is not None:
                stack.enter_context(_note_threads(self.threads))
                self.memory.add_inputs(arguments)
                stack.enter_context(self.memory.closed())
                stack.enter_context(HostReads(self.memory, self._readable))
                stack.enter_context(MaskMode(self.memory))
            yield


class PoisonMode(OperationMode):
    """Poison the results of the operations at one site.

    Attributes:
        is_complete: False if a result could not be changed without danger, as a size can't.
    """

    def __init__(self, site: Site, path: str) -> None:
        super().__init__()
        self.is_complete = True
        self._site = site
        self._path = path

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Execute one ATen operation of the version."""
        kwargs = kwargs or {}
        result = run_operation(self, func, args, kwargs)
        if func.overloadpacket.__name__ != self._site.operation or not is_builtin(func):
            return result
        if not computes(func, args, result) or find_line(self._path) != self._site.line:
            return result
        tensors = written_tensors(func, args, result)
        with _disable_current_modes():
            changed = [_poison(tensor) for tensor in tensors]
        if not tensors and isinstance(result, float | bool):
            return float("nan") if isinstance(result, float) else not result
        self.is_complete &= bool(changed) and all(changed)
        return result


class MaskMode(OperationMode):
    """Open masked memory for each torch operation of the version."""

    def __init__(self, memory: MaskedMemory) -> None:
        super().__init__()
        self._memory = memory

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Execute one ATen operation of the version."""
        kwargs = kwargs or {}
        if not is_builtin(func):  # its code may read memory by other means
            return run_operation(self, func, args, kwargs)
        if not reads_memory(func) and self._memory.has_all(tree_leaves((args, kwargs))):
            result = func(*args, **kwargs)
            self._memory.add_unread(tree_leaves(result))
            return result
        with self._memory.opened():
            self._memory.add(tree_leaves((args, kwargs)))
            result = func(*args, **kwargs)
            self._memory.add(tree_leaves(result))
        return result


@contextlib.contextmanager
def _note_threads(names: dict[str, None]) -> Iterator[None]:
    """Note the threads of the version that exist, and those that it starts in this context."""
    names.update(dict.fromkeys(version_threads()))
    start = threading.Thread.start

    def noting_start(thread: threading.Thread) -> None:
        names[thread.name] = None
        start(thread)

    threading.Thread.start = noting_start  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


@contextlib.contextmanager
def _fixed_seed() -> Iterator[None]:
    """Give every call the same random numbers of torch, and restore its generators."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        # `torch.manual_seed` formats a stack for each kind of device that is not there: 0.7 ms.
        for generator in (
            torch.default_generator,
            *(torch.cuda.default_generators[i] for i in devices),
        ):
            generator.manual_seed(0)
        yield


def _poison(tensor: torch.Tensor) -> bool:
    """Make floats NaN, invert truth values, reverse integers; return False if not possible."""
    if tensor.numel() == 0:
        return True
    if tensor.is_floating_point() or tensor.is_complex():
        tensor.fill_(float("nan"))
        return True
    if tensor.dtype == torch.bool:
        tensor.logical_not_()
        return True
    low, high = tensor.min(), tensor.max()
    if bool(low == high):
        return False
    tensor.copy_(low + high - tensor)
    return True
