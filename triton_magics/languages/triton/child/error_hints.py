"""One line of advice for the messages of Triton and CUDA."""

from __future__ import annotations

import difflib
import re
import sys

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


_MISSING_NAME = re.compile(r"module 'triton\.language[\w.]*' has no attribute '(\w+)'")


def hint_for(message: str) -> str | None:
    """Return one line of advice for an error message, or None."""
    name = _intended_name(message)
    question = f"did you mean tl.{name}?" if name else ""
    if mistake := knowledge.mistake_for(message):
        return f"{question} {mistake.advice}".strip()
    if question:
        return question
    return next((hint for pattern, hint in _WHILE_RUNNING if re.search(pattern, message)), None)


def corrected_line(message: str, code: str) -> str | None:
    """Return the line with the nearest name of Triton's language for one it does not have."""
    missing, name = _MISSING_NAME.search(message), _intended_name(message)
    if missing is None or name is None:
        return None
    corrected = re.sub(rf"\.{missing[1]}\b", f".{name}", code)
    return corrected if corrected != code else None


def _intended_name(message: str) -> str | None:
    """Return the name of Triton's language that is nearest to one it does not have."""
    missing = _MISSING_NAME.search(message)
    language = sys.modules.get("triton.language")
    if missing is None or language is None:
        return None
    public = [name for name in dir(language) if not name.startswith("_")]
    return next(iter(difflib.get_close_matches(missing[1], public, n=1)), None)


def is_launch_mistake(message: str) -> bool:
    """Return True for the message of a launch that every GPU would refuse."""
    mistake = knowledge.mistake_for(message)
    return mistake is not None and mistake.at_launch
