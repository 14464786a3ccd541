"""A Triton driver for a machine without a GPU: it compiles for a target and launches nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from triton_magics.languages.kernel_compiler import UNKNOWN_SMS, Target

_CUDA = torch.device("cuda", 0)
_NUMBERS = itertools.count()


class StubUtils:
    """The `utils` that Triton expects of a driver; `load` gets each compiled kernel's binary."""

    def __init__(self, sm_count: int, load: Callable[[str, bytes], tuple[int, int]]) -> None:
        self._sm_count = sm_count
        self._load = load

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return limits of the missing GPU; too much shared memory is reported, not refused."""
        return {
            "max_shared_mem": 2**31 - 1,
            "multiprocessor_count": self._sm_count,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 3201000,
            "mem_bus_width": 6144,
        }

    def load_binary(
        self, name: str, binary: bytes, shared: int, device: int
    ) -> tuple[object, object, int, int, int]:
        """Return module, function, registers, spilled words, threads per block."""
        registers, spills = self._load(name, binary)
        return object(), object(), registers, spills, 1024

    def set_printf_fifo_size(self, size: int) -> None:
        """Do nothing: there is no printf buffer."""

    def fill_tma_descriptor_tiled(self, *args: object) -> None:
        """Do nothing: there is no GPU to describe a tensor to."""

    fill_tma_descriptor_im2col = fill_tma_descriptor_tiled
    fill_tma_descriptor = fill_tma_descriptor_tiled


class StubDriver(DriverBase):
    """A Triton driver for a machine without a GPU: knows a target, launches nothing.

    Each has a device number of its own: Triton caches a kernel by the device's number, and launches
    a cached kernel by the driver that it was compiled for.
    """

    def __init__(
        self,
        target: Target = Target(),  # noqa: B008 (a tuple)
        load: Callable[[str, bytes], tuple[int, int]] = lambda name, binary: (0, 0),
        on_launch: Callable[..., None] = lambda *args: None,
    ) -> None:
        super().__init__()
        self._target = target
        self._on_launch = on_launch
        self._number = next(_NUMBERS)
        self.utils = StubUtils(target.sm_count or UNKNOWN_SMS, load)

    @classmethod
    def is_active(cls) -> bool:
        """Return True: it needs no hardware."""
        return True

    def get_current_target(self) -> GPUTarget:
        """Return the GPU to compile for."""
        return GPUTarget("cuda", self._target.capability, 32)

    def get_current_device(self) -> int:
        """Return the number of the only device."""
        return self._number

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is only one device."""

    def get_current_stream(self, device: int = 0) -> int:
        """Return the number of the only stream."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Return the device of kernels at module level; the pretended GPU maps it."""
        return _CUDA

    def get_device_interface(self) -> Any:
        """Return the interface that the CUDA driver returns."""
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Return the type as it is: nothing is launched."""
        return ty

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Return equal times for all configurations, so that an autotuner takes its first."""
        return lambda fn, quantiles=None, **kwargs: [1.0, 1.0, 1.0]

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        """Return a launch that only reports its grid and metadata."""
        return lambda *args: self._on_launch(metadata, args[:3])

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """Return an empty tensor: there is no cache to flush."""
        return torch.empty(0)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Do nothing: there is no cache to flush."""
