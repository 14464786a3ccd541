"""Fake GPU: run code written for a GPU on a machine without one.

In the interpreter and in the cross-compiler a wrapper's `assert x.is_cuda` must hold, its
`device="cuda"` must mean the available device, and its queries of the GPU (number of SMs) must
return values. Its streams and events have always done their work. The fake is active only while
the version's own code runs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from triton_magics.harness.process.device import GPU
from triton_magics.languages.kernel_compiler import UNKNOWN_SMS, Target

_IS_CUDA = torch.Tensor.is_cuda.__get__
_DEVICE = torch.Tensor.device.__get__
_GET_DEVICE = torch.Tensor.get_device

_CUDA = 1  # torch's number for this type of device
_numbers = itertools.count(1)
DEFAULT_TARGET = Target()
SHARED_BYTES = {75: 65536, 80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}


class FakeCuda(TorchFunctionMode):
    """Report every tensor as a GPU tensor, and create new ones on `device`."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Execute one torch call of the version's code."""
        if func == _IS_CUDA:
            return True
        if func == _DEVICE:
            return GPU
        if func == _GET_DEVICE:
            return 0
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.record_stream:
            return None
        mapped = {k: self._map_device(v, k == "device") for k, v in (kwargs or {}).items()}
        moves = func is torch.Tensor.to
        return func(*(self._map_device(a, moves) for a in args), **mapped)

    def _map_device(self, value: Any, may_be_text: bool) -> Any:
        if isinstance(value, torch.device) and value.type == GPU.type:
            return self.device
        if may_be_text and isinstance(value, str) and value.startswith(GPU.type):
            return self.device
        if may_be_text and isinstance(value, int) and not isinstance(value, bool):
            return self.device
        return value


class FakeStream(torch.Stream):
    """A stream of a GPU that has always done its work; number 0 is the default stream."""

    def __new__(cls, device: Any = None, priority: int = 0, *, number: int | None = None) -> Any:
        """Return a stream with its own number: torch takes no other class for one."""
        own = next(_numbers) if number is None else number
        return super().__new__(cls, stream_id=own, device_index=0, device_type=_CUDA)

    @property
    def cuda_stream(self) -> int:
        """Return the handle that a launch takes."""
        return self.stream_id

    def query(self) -> bool:
        """Return that its work is done."""
        return True

    def synchronize(self) -> None:
        """Wait for nothing."""

    def wait_stream(self, stream: FakeStream) -> None:
        """Wait for nothing."""

    def wait_event(self, event: FakeEvent) -> None:
        """Wait for nothing."""

    def record_event(self, event: FakeEvent | None = None) -> FakeEvent:
        """Return the event, or a new one."""
        return event or FakeEvent()


class FakeEvent:
    """An event that has happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_event = id(self)

    def record(self, stream: FakeStream | None = None) -> None:
        """Record nothing."""

    def wait(self, stream: FakeStream | None = None) -> None:
        """Wait for nothing."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def query(self) -> bool:
        """Return that it has happened."""
        return True

    def elapsed_time(self, end_event: FakeEvent) -> float:
        """Return 0 milliseconds: no GPU has a time."""
        return 0.0


class _Streams:
    """The streams of the fake GPU; `current` is where its work goes."""

    def __init__(self) -> None:
        self.default = self.current = FakeStream(number=0)

    def set(self, stream: FakeStream | None) -> None:
        self.current = stream or self.current

    @contextlib.contextmanager
    def use(self, stream: FakeStream | None) -> Iterator[None]:
        before = self.current
        self.set(stream)
        try:
            yield
        finally:
            self.current = before


def _properties(target: Target) -> SimpleNamespace:
    capability = target.capability
    return SimpleNamespace(
        name=f"a GPU of sm_{capability} (not present)",
        major=capability // 10,
        minor=capability % 10,
        multi_processor_count=target.sm_count or UNKNOWN_SMS,
        total_memory=80 * 2**30,
        L2_cache_size=50 * 2**20,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_multiprocessor=SHARED_BYTES.get(capability, 101376) + 1024,
        shared_memory_per_block_optin=SHARED_BYTES.get(capability, 101376),
    )


def _fake_functions(target: Target) -> dict[str, Callable[..., Any]]:
    """Return the functions and classes that replace those of `torch.cuda`."""
    streams = _Streams()
    memory = _properties(target).total_memory
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: _properties(target).name,
        "get_device_capability": lambda device=None: divmod(target.capability, 10),
        "get_device_properties": lambda device=None: _properties(target),
        "synchronize": lambda device=None: None,
        "set_device": lambda device: None,
        "current_stream": lambda device=None: streams.current,
        "default_stream": lambda device=None: streams.default,
        "set_stream": streams.set,
        "stream": streams.use,
        "Stream": FakeStream,
        "Event": FakeEvent,
        "is_current_stream_capturing": lambda: False,
        "mem_get_info": lambda device=None: (memory, memory),
        "device": lambda device: contextlib.nullcontext(),
    }


@contextlib.contextmanager
def fake_gpu(device: torch.device, target: Target = DEFAULT_TARGET) -> Iterator[None]:
    """Make `device` act as a GPU; do nothing if it is one."""
    if device.type == GPU.type:
        yield
        return
    fakes = _fake_functions(target)
    saved = {name: getattr(torch.cuda, name) for name in fakes}
    for name, answer in fakes.items():
        setattr(torch.cuda, name, answer)
    try:
        with FakeCuda(device):
            yield
    finally:
        for name, original in saved.items():
            setattr(torch.cuda, name, original)
