"""Code written for a GPU, run where there is none.

In the interpreter and in the cross-compiler a wrapper's `assert x.is_cuda` must hold, its
`device="cuda"` must mean the device at hand, and what it asks of the GPU (how many SMs?) must have
an answer. All of that lasts only while the version's own code runs.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

_CUDA = torch.device("cuda", 0)
_IS_CUDA = torch.Tensor.is_cuda.__get__
_DEVICE = torch.Tensor.device.__get__
_GET_DEVICE = torch.Tensor.get_device

SM_COUNT = 132
_NUMBERS = itertools.count()
SHARED_BYTES = {75: 65536, 80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}


class PretendCuda(TorchFunctionMode):
    """Answers as if every tensor were on the GPU; puts new ones on `device`."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """One torch call of the version's code."""
        if func == _IS_CUDA:
            return True
        if func == _DEVICE:
            return _CUDA
        if func == _GET_DEVICE:
            return 0
        if func is torch.Tensor.cuda:
            return args[0]
        mapped = {k: self._real(v, k == "device") for k, v in (kwargs or {}).items()}
        moves = func is torch.Tensor.to
        return func(*(self._real(a, moves) for a in args), **mapped)

    def _real(self, value: Any, may_be_text: bool) -> Any:
        if isinstance(value, torch.device) and value.type == "cuda":
            return self.device
        if may_be_text and isinstance(value, str) and value.startswith("cuda"):
            return self.device
        if may_be_text and isinstance(value, int) and not isinstance(value, bool):
            return self.device
        return value


def _properties(target: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=f"a GPU of sm_{target} that is not here",
        major=target // 10,
        minor=target % 10,
        multi_processor_count=SM_COUNT,
        total_memory=80 * 2**30,
        L2_cache_size=50 * 2**20,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_multiprocessor=SHARED_BYTES.get(target, 101376) + 1024,
        shared_memory_per_block_optin=SHARED_BYTES.get(target, 101376),
    )


def _answers(target: int) -> dict[str, Callable[..., Any]]:
    """What `torch.cuda` says while we pretend."""
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: _properties(target).name,
        "get_device_capability": lambda device=None: divmod(target, 10),
        "get_device_properties": lambda device=None: _properties(target),
        "synchronize": lambda device=None: None,
        "set_device": lambda device: None,
        "current_stream": lambda device=None: SimpleNamespace(cuda_stream=0),
        "device": lambda device: contextlib.nullcontext(),
    }


@contextlib.contextmanager
def pretending(device: torch.device, target: int = 90) -> Iterator[None]:
    """While this lasts, `device` passes for a GPU; nothing happens if it is one."""
    if device.type == "cuda":
        yield
        return
    answers = _answers(target)
    saved = {name: getattr(torch.cuda, name) for name in answers}
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    try:
        with PretendCuda(device):
            yield
    finally:
        for name, original in saved.items():
            setattr(torch.cuda, name, original)


class StubUtils:
    """What Triton asks of a driver's `utils`; `load` gets each compiled kernel's binary."""

    def __init__(self, target: int, load: Callable[[str, bytes], tuple[int, int]]) -> None:
        self._target = target
        self._load = load

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Limits of the GPU that is not there; too much shared memory is reported, not refused."""
        return {
            "max_shared_mem": 2**31 - 1,
            "multiprocessor_count": SM_COUNT,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 3201000,
            "mem_bus_width": 6144,
        }

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[object, object, int, int, int]:
        """Module, function, registers, spilled words, threads per block."""
        registers, spills = self._load(name, binary)
        return object(), object(), registers, spills, 1024

    def set_printf_fifo_size(self, size: int) -> None:
        """There is no printf buffer here."""

    def fill_tma_descriptor_tiled(self, *args: object) -> None:
        """There is nothing to describe to."""

    fill_tma_descriptor_im2col = fill_tma_descriptor_tiled
    fill_tma_descriptor = fill_tma_descriptor_tiled


class StubDriver(DriverBase):
    """A Triton driver for a machine without a GPU: knows a target, launches nothing.

    Each is a device of its own: what Triton keeps of a kernel, it keeps by the device's number, and
    a kernel that it has would be launched by the driver that it was compiled for.
    """

    def __init__(
        self,
        target: int = 90,
        load: Callable[[str, bytes], tuple[int, int]] = lambda name, binary: (0, 0),
        launched: Callable[..., None] = lambda *args: None,
    ) -> None:
        super().__init__()
        self._target = target
        self._launched = launched
        self._number = next(_NUMBERS)
        self.utils = StubUtils(target, load)

    @classmethod
    def is_active(cls) -> bool:
        """Always: it needs nothing."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The GPU to compile for."""
        return GPUTarget("cuda", self._target, 32)

    def get_current_device(self) -> int:
        """The only one."""
        return self._number

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The only one."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """What kernels at module level ask for; `PretendCuda` maps it."""
        return _CUDA

    def get_device_interface(self) -> Any:
        """As the CUDA driver answers."""
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Not used: nothing is launched."""
        return ty

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """All configurations of an autotuner cost the same here, so it takes its first."""
        return lambda fn, quantiles=None, **kwargs: [1.0, 1.0, 1.0]

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        """A launch that only tells its grid and metadata."""
        return lambda *args: self._launched(metadata, args[:3])

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Nothing to flush."""
        return torch.empty(0)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Nothing to flush."""
