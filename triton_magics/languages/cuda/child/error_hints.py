"""One line of advice for the messages of NVRTC, of the CUDA driver and of launches."""

from __future__ import annotations

import re

_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"could not open source file",
        "NVRTC has no C++ standard library: include cuda_fp16.h, cuda_bf16.h, mma.h, cuda/std/...",
    ),
    (r"too much shared data", "use less static shared memory, or dynamic: extern __shared__"),
    (
        r"illegal memory access",
        "an access outside a tensor; --sanitize finds its thread",
    ),
    (r"misaligned address", "a vector load needs an address that is a multiple of its size"),
    (
        r"OUT_OF_RESOURCES|too many resources",
        "the block needs more registers than an SM has: use fewer threads or __launch_bounds__",
    ),
    (r"CUDA_ERROR_INVALID_VALUE", "the grid, the block or the shared memory is too large"),
    (r"device-side assert", "an assert(...) in the kernel failed"),
)
_LAUNCH_FAULT = re.compile(r"^LaunchError: ")


def find_hint(message: str) -> str | None:
    """Return one line of advice for an error message, or None."""
    return next((hint for pattern, hint in _HINTS if re.search(pattern, message)), None)


def is_launch_fault(message: str) -> bool:
    """Return True for the message of a launch that every GPU would refuse."""
    return bool(_LAUNCH_FAULT.match(message))
