"""Fake GPU: run code written for a GPU on a machine without one.

In the interpreter and in the cross-compiler a wrapper's `assert x.is_cuda` must hold, its
`device="cuda"` must mean the available device, and its queries of the GPU (number of SMs) must
return values. The fake is active only while the version's own code runs.
"""

from __future__ import annotations

import contextlib
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
    """Return the functions that replace those of `torch.cuda`."""
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: _properties(target).name,
        "get_device_capability": lambda device=None: divmod(target.capability, 10),
        "get_device_properties": lambda device=None: _properties(target),
        "synchronize": lambda device=None: None,
        "set_device": lambda device: None,
        "current_stream": lambda device=None: SimpleNamespace(cuda_stream=0),
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
