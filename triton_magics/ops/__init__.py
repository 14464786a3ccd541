"""The ops that ship, and the user's own: one file each, all of one form.

An op's file is a plain module. It must define

    reference(*inputs)                            what the output must be, in torch, in any dtype
    make_inputs(shape, dtype, device, generator)  a tuple of inputs, random ones from `generator`

and it may define

    SIZES         {"small": ..., "medium": ..., "large": ...}; 256x256, 1024x1024, 4096x4096
    SHAPES        awkward shapes, cheap ones first; primes, 1x1, one row, one column, ...
    DTYPES        names of torch dtypes; ("float32",)
    OP_CLASS      "elementwise", "reduction" or "matmul", for the tolerance; "reduction"
    DEFINED_FOR_NONFINITE         whether NaN and Inf may be fed; False
    REGIMES_SKIP                  kinds of input that make no sense for it; ()
    flops(*inputs)                operations that the formula asks for
    bytes(*inputs, output)        compulsory traffic, where it is not every tensor once
    INDEPENDENT   (0, None): along which dimension each input may be cut, so that the outputs
                  of the parts are parts of the output; ()
    scratch(*inputs)              elements of the largest tensor that `reference` makes on its way
    exact(*inputs)                `reference` for float64, in less memory
    check(inputs, output, call)   a message when a random output is wrong, else None;
                                  `call(*inputs)` runs the version again
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from triton_magics.errors import UnknownOp, did_you_mean
from triton_magics.ops._op import REGIMES, Op, from_module, module_from_file

# op -> its module
BUILTIN = {
    name: f"{__name__}.{name}"
    for name in (
        "vector_add", "vector_mul", "relu", "gelu", "softmax", "layer_norm", "matmul",
        "dropout", "attention", "mha", "cross_entropy", "sum", "mean",
    )
}  # fmt: skip
ALIASES = {"add": "vector_add", "layernorm": "layer_norm"}


@functools.cache
def load(name: str) -> Op:
    """A built-in op by its name or alias.

    Raises:
        UnknownOp: no such op ships.
    """
    canonical = ALIASES.get(name, name)
    if canonical not in BUILTIN:
        hint = did_you_mean(name, [*BUILTIN, *ALIASES])
        raise UnknownOp(f"unknown op {name!r}.{hint} Known: {', '.join(sorted(BUILTIN))}")
    return from_module(importlib.import_module(BUILTIN[canonical]), canonical)


def load_file(path: str | Path, name: str) -> Op:
    """The user's own op from its file, which is run.

    Args:
        path: the file with `reference` and `make_inputs`.
        name: the op's name.

    Raises:
        BadKernelSource: no such file, or a function is missing or can't be called as it must be.
        BadValue: a constant (SIZES, SHAPES, DTYPES, ...) is malformed.
        Exception: whatever the file raises while it runs.
    """
    return from_module(module_from_file(Path(path), name), name)


__all__ = ["ALIASES", "BUILTIN", "REGIMES", "Op", "load", "load_file"]
