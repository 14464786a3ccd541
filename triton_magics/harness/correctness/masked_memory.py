"""Memory that holds wrong values except while a kernel launch or a torch operation runs.

Code that reads or writes a tensor by other means then spoils its result: NumPy on shared memory,
an extension, a CUDA graph, torch in another thread.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

MASK = 0x55  # turns 1.0 of float32 into 1.5e13, of float16 into 82
THREADS_S = 0.005  # for threads of the version to read masked memory


class MaskedMemory:
    """Storages whose bytes are masked by XOR while the memory is closed.

    Args:
        readable: elements of small results that stay readable for the host.
    """

    def __init__(self, readable: int) -> None:
        self._readable = readable
        self._storages: dict[tuple[str, int], list[torch.Tensor]] = {}
        self._depth = 1
        self._lock = threading.RLock()

    def add_inputs(self, tensors: Iterable[Any]) -> None:
        """Add the bytes of tensors whose storage may hold more than them; the memory is open."""
        for tensor in tensors:
            if type(tensor) is torch.Tensor and tensor.numel():
                spans = zip(tensor.shape, tensor.stride(), strict=True)
                elements = 1 + sum((n - 1) * stride for n, stride in spans)
                start = tensor.storage_offset() * tensor.element_size()
                whole = _bytes_of(tensor)[start : start + elements * tensor.element_size()]
                self._storages.setdefault(_key(tensor), []).append(whole)

    def add(self, tensors: Iterable[Any]) -> None:
        """Add the storages of tensors; the memory is open, and masks them when it closes."""
        for tensor in tensors:
            if type(tensor) is not torch.Tensor or tensor.is_meta or not tensor.numel():
                continue
            if _key(tensor) not in self._storages:
                elements = tensor.untyped_storage().nbytes() // tensor.element_size()
                is_readable = elements <= self._readable
                self._readable -= elements * is_readable
                self._storages[_key(tensor)] = [] if is_readable else [_bytes_of(tensor)]

    def has_all(self, tensors: Iterable[Any]) -> bool:
        """Return whether the memory of all tensors was added."""
        own = [x for x in tensors if isinstance(x, torch.Tensor) and x.numel()]
        are_plain = all(type(x) is torch.Tensor and not x.is_meta for x in own)
        return are_plain and all(_key(x) in self._storages for x in own)

    def add_unread(self, tensors: Iterable[Any]) -> None:
        """Add the storages of tensors that nobody has written yet, whether open or closed.

        Nothing waits until they are masked: the next opening does.
        """
        with self._lock, _disable_current_modes():
            before = {*self._storages}
            self.add(tensors)
            if self._depth:
                return  # open: the next closing masks them
            for key in self._storages.keys() - before:
                for region in self._storages[key]:
                    region.bitwise_xor_(MASK)

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Mask the memory within this context, but where it is opened."""
        self._close()
        try:
            yield
        finally:
            self._open()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the true values within this context."""
        _let_threads_run()
        self._open()
        try:
            yield
        finally:
            self._close()

    def _open(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._flip()

    def _close(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._flip()

    def _flip(self) -> None:
        with _disable_current_modes():
            regions = [region for group in self._storages.values() for region in group]
            if on_gpu := any(region.is_cuda for region in regions):
                torch.cuda.synchronize()
            for region in regions:
                region.bitwise_xor_(MASK)
            if on_gpu:
                torch.cuda.synchronize()


def _key(tensor: torch.Tensor) -> tuple[str, int]:
    return str(tensor.device), tensor.untyped_storage().data_ptr()


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor's storage."""
    with _disable_current_modes():
        whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return whole.set_(tensor.untyped_storage())


def _let_threads_run() -> None:
    """Wait while the memory is masked if there are threads that are not the worker's own."""
    if version_threads():
        time.sleep(THREADS_S)


def version_threads() -> list[str]:
    """Return the names of the threads that run neither this one nor the worker's own code."""
    own = {threading.get_ident(), threading.main_thread().ident}
    others = [t for t in threading.enumerate() if t.ident not in own]
    return [t.name for t in others if not (_is_worker_thread(t) or is_progress_monitor(t))]


def _is_worker_thread(thread: threading.Thread) -> bool:
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return str(module).startswith("triton_magics.")


def is_progress_monitor(thread: threading.Thread) -> bool:
    """Return True for the thread by which tqdm redraws progress bars, as torch's compiler's."""
    monitor = sys.modules.get("tqdm._monitor")
    return monitor is not None and type(thread) is monitor.TMonitor


class HostReads(TorchFunctionMode):
    """Let the host read lists of a few elements, such as offsets, of masked memory.

    These are counted apart from small results: a version may make one, and read a shape afterwards.
    """

    def __init__(self, memory: MaskedMemory, readable: int) -> None:
        super().__init__()
        self._memory, self._readable = memory, readable

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Execute one torch call of the version's code."""
        kwargs = kwargs or {}
        is_read = func is torch.Tensor.tolist and args[0].numel() <= self._readable
        self._readable -= args[0].numel() if is_read else 0
        with self._memory.opened() if is_read else contextlib.nullcontext():
            return func(*args, **kwargs)
