"""What decides how torch computes, and how fast: the same for all who are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# The places of torch 2.9 and later; reading them never fails, whichever API set them.
_PLACES: tuple[tuple[Any, str], ...] = (
    (torch.backends, "fp32_precision"),
    (torch.backends.cuda.matmul, "fp32_precision"),
    (torch.backends.cudnn.conv, "fp32_precision"),
    (torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
)
# Which kernels attention may take.
_SWITCHES: tuple[tuple[Callable[[], bool], Callable[[bool], None]], ...] = (
    (torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    (torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp),
    (torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    (torch.backends.cuda.cudnn_sdp_enabled, torch.backends.cuda.enable_cudnn_sdp),
)


class TorchSettings:
    """Precision, attention's kernels, determinism: as they are when this is made.

    They are to be put back after foreign code.
    """

    def __init__(self) -> None:
        self._product = torch.get_float32_matmul_precision()
        self._precision = [getattr(place, name) for place, name in _PLACES]
        self._switches = [read() for read, _ in _SWITCHES]
        self._deterministic = torch.get_deterministic_debug_mode()

    def put_back(self) -> bool:
        """Whether something had changed; it is now as it was."""
        return any([self._precision_back(), self._switches_back(), self._determinism_back()])

    def _precision_back(self) -> bool:
        if [getattr(place, name) for place, name in _PLACES] == self._precision:
            return False
        torch.backends.fp32_precision = self._precision[0]
        # Through the older API too: torch refuses a product where the two disagree.
        torch.set_float32_matmul_precision(self._product)
        for (place, name), value in zip(_PLACES, self._precision, strict=True):
            setattr(place, name, value)
        return True

    def _switches_back(self) -> bool:
        changed = [read() for read, _ in _SWITCHES] != self._switches
        if changed:
            for (_, write), value in zip(_SWITCHES, self._switches, strict=True):
                write(value)
        return changed

    def _determinism_back(self) -> bool:
        changed = torch.get_deterministic_debug_mode() != self._deterministic
        if changed:
            torch.set_deterministic_debug_mode(self._deterministic)
        return changed
