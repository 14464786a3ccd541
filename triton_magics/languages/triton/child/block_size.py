"""Refuse kernels whose blocks are so large that compilers work on them for long.

LLVM and ptxas unroll a block over the threads of a program. A softmax of one row in a block (triton
3.7.1, sm_90, seconds of a core): 256 elements a thread 0.6, 512 take 2.1, 4,096 more than 60.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.compiler.compiler import ASTSource

from triton_magics.languages.kernel_compiler import CompilesLong

MAX_ELEMENTS = 512  # of a block, for each thread
_WARP = 32
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")


@contextmanager
def refuse_large() -> Iterator[None]:
    """Raise CompilesLong after a kernel's front end, before LLVM, if a block of it is too large."""
    make_ir = ASTSource.make_ir

    def make_small(self: Any, *args: Any, **kwargs: Any) -> Any:
        module = make_ir(self, *args, **kwargs)
        warps = next(a.num_warps for a in (*args, *kwargs.values()) if hasattr(a, "num_warps"))
        if largest_block(str(module)) > MAX_ELEMENTS * _WARP * warps:
            raise CompilesLong
        return module

    ASTSource.make_ir = make_small
    try:
        yield
    finally:
        ASTSource.make_ir = make_ir


def largest_block(code: str) -> int:
    """Return the elements of the largest tensor in the code of a kernel, 0 if it has none."""
    shapes = {match[1] for match in _SHAPE.finditer(code)}
    return max((math.prod(map(int, shape.split("x")[:-1])) for shape in shapes), default=0)
