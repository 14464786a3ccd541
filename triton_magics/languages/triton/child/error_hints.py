"""One line of advice for the messages of Triton and CUDA."""

from __future__ import annotations

import re

from triton_magics import knowledge

# What only a run says. The mistakes that a compiler or a launch finds are in knowledge/mistakes.md.
_WHILE_RUNNING: tuple[tuple[str, str], ...] = (
    (
        r"Pointer argument.*cannot be accessed|cpu tensor",
        "move every tensor that a kernel gets to the GPU",
    ),
    (r"illegal memory access", "a load or store goes outside its tensor: check masks and strides"),
    (r"misaligned address", "an offset or a tl.multiple_of promise does not hold for this input"),
    (
        r"Too many open files",
        "close what is opened (`with open(...)`): a worker may have about a thousand at a time",
    ),
    (
        r"PassManager::run failed",
        "the compiler gave up: try other num_warps, num_ctas or blocks; what it printed says more",
    ),
    (r"device-side assert", "a tl.device_assert failed, or an index is out of range"),
)


def hint_for(message: str) -> str | None:
    """Return one line of advice for an error message, or None."""
    if mistake := knowledge.mistake_for(message):
        return mistake.advice
    return next((hint for pattern, hint in _WHILE_RUNNING if re.search(pattern, message)), None)


def is_launch_mistake(message: str) -> bool:
    """Return True for the message of a launch that every GPU would refuse."""
    mistake = knowledge.mistake_for(message)
    return mistake is not None and mistake.at_launch
