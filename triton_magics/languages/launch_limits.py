"""Recognize a launch that was refused because it is too large for the GPU or for its compiler.

Such a launch raises an error and computes nothing. At an extreme shape it is a limit of the
version, not a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Source: CUDA C++ Programming Guide, technical specifications of all compute capabilities.
MAX_GRID = (2**31 - 1, 65_535, 65_535)
_AXES = ("first", "second", "third")
_PATTERNS = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (
            r"numel \((\d+)\) exceeds triton maximum tensor numel \((\d+)\)",
            "a block has {0:,} elements, Triton allows {1:,}",
        ),
        (
            r"less than or equal to TRITON_MAX_TENSOR_NUMEL = (\d+)",
            "a block has more elements than the {0:,} that Triton allows",
        ),
        (
            r"out of resource: threads, Required: (\d+), Hardware limit: (\d+)",
            "a program needs {0:,} threads, the GPU allows {1:,}",
        ),
        (
            r"out of resource: ([a-z ]+), Required: (\d+), Hardware limit: (\d+)",
            "a program needs {1:,} bytes of {0}, the GPU has {2:,}",
        ),
        (
            r"((?:grid|block)\.[xyz]) is ([1-9]\d*); 1 to ([\d,]+) are possible",
            "{0} is {1:,}, CUDA allows {2}",
        ),
        (
            r"a block of ([\d,]+) threads; at most ([\d,]+) are possible",
            "a block has {0} threads, CUDA allows {1}",
        ),
        (
            r"LAUNCH_OUT_OF_RESOURCES|too many resources requested for launch",
            "a block needs more registers than a multiprocessor has",
        ),
        (
            r"cuFuncSetAttribute: CUDA_ERROR_INVALID_VALUE|uses too much shared data",
            "a block needs more shared memory than the GPU has",
        ),
    )
)
_INVALID = re.compile(r"CUDA_ERROR_INVALID_VALUE|invalid (?:configuration )?argument")


def find_limit(message: str, grids: Sequence[tuple[int, ...]]) -> str | None:
    """Return the limit that a launch was refused for; None for any other error.

    Args:
        message: of the exception.
        grids: of the launches of the call, in order; the last one was refused.
    """
    for pattern, text in _PATTERNS:
        if match := pattern.search(message):
            return text.format(*(int(g) if g.isdigit() else g for g in match.groups()))
    return _find_grid_limit(grids[-1]) if grids and _INVALID.search(message) else None


def _find_grid_limit(grid: tuple[int, ...]) -> str | None:
    """Return the axis of a grid that is too long for CUDA."""
    for axis, n, most in zip(_AXES, grid, MAX_GRID, strict=False):
        if n > most:
            return f"the {axis} axis of the grid has {n:,} programs, CUDA allows {most:,}"
    return None
