"""Torch's settings that affect precision and speed, the same for all providers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# The attributes of torch 2.9 and later; reading them never fails, whichever API set them.
_ATTRIBUTES: tuple[tuple[Any, str], ...] = (
    (torch.backends, "fp32_precision"),
    (torch.backends.cuda.matmul, "fp32_precision"),
    (torch.backends.cudnn.conv, "fp32_precision"),
    (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
)
# The kernels that attention may use.
_SWITCHES: tuple[tuple[Callable[[], bool], Callable[[bool], None]], ...] = (
    (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    (torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp),
    (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    (torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp),
)


class TorchSettings:
    """Precision, attention kernels and determinism at the time of construction.

    Restore them after foreign code.
    """

    def __init__(self) -> None:
        self._matmul_precision = torch.get_float32_matmul_precision()
        self._precision = [getattr(owner, name) for owner, name in _ATTRIBUTES]
        self._switches = [read() for read, _ in _SWITCHES]
        self._deterministic = torch.get_deterministic_debug_mode()

    def restore(self) -> bool:
        """Restore the settings; return whether any of them had changed."""
        return any(
            [self._restore_precision(), self._restore_switches(), self._restore_determinism()]
        )

    def _restore_precision(self) -> bool:
        if [getattr(owner, name) for owner, name in _ATTRIBUTES] == self._precision:
            return False
        torch.backends.fp32_precision = self._precision[0]
        # Also through the older API: torch refuses a matmul where the two disagree.
        torch.set_float32_matmul_precision(self._matmul_precision)
        for (owner, name), value in zip(_ATTRIBUTES, self._precision, strict=True):
            setattr(owner, name, value)
        return True

    def _restore_switches(self) -> bool:
        changed = [read() for read, _ in _SWITCHES] != self._switches
        if changed:
            for (_, write), value in zip(_SWITCHES, self._switches, strict=True):
                write(value)
        return changed

    def _restore_determinism(self) -> bool:
        changed = torch.get_deterministic_debug_mode() != self._deterministic
        if changed:
            torch.set_deterministic_debug_mode(self._deterministic)
        return changed
