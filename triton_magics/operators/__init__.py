"""Ops: those that ship, and the user's own; one file each, all of the same form.

An op's file is a plain module. It must define

    reference(*inputs)                            the correct output, in torch, in any dtype
    make_inputs(shape, dtype, device, generator)  a tuple of inputs, random ones from `generator`

and it may define

    SIZES         shapes to time by name, one or more: {"decode": (1, 4096)};
                  small, medium, large: 256x256, 1024x1024, 4096x4096
    SHAPES        awkward shapes, cheap ones first; primes, 1x1, one row, one column, ...;
                  (): it is computed at its sizes only
    DTYPES        names of torch dtypes; ("float32",)
    OP_CLASS      "elementwise", "reduction" or "matmul", for the tolerance; "reduction"
    LAYOUTS       ("contiguous",): layouts in memory that a version must take its tensors in; all:
                  contiguous, transposed, strided, padded rows, interleaved heads, expanded,
                  unaligned, padded matrices, padded batches, padded columns, every second row,
                  expanded columns, expanded rows, expanded matrices, expanded but rows,
                  expanded and strided, expanded column of a matrix, expanded row of a matrix,
                  overlapping, reversed dimensions, transposed and strided,
                  transposed and padded matrices, interleaved heads and padded batches,
                  loose lengths of one, permuted
    TOLERANCE     {"atol": 1e-2, "rtol": 1e-2, "matched_ratio": 1}: the rule of the problem that it
                  was imported from, for a verdict beside ours; {}
    DEFINED_FOR_NONFINITE         whether NaN and Inf may be fed; False
    DEFINED_FOR_MINUS_INF         False where only NaN and +Inf may; True
    REGIMES_SKIP                  kinds of input that are meaningless for it; ()
    FLOAT16_SKIP                  further ones that are meaningless in float16 alone; ()
    GRADIENTS_SKIP                further ones that are meaningless for its gradients; ()
    QUICK_REGIMES                 kinds of input that a quick plan also has, in every dtype; ()
    MUTATES       positions of the inputs that a call changes; ()
    STRUCTURED    positions of the tensors that are sorted, symmetric or the like: their values are
                  always those of `make_inputs`; ()
    SCALARS       {"alpha": (1.0, 0.5)}: values of parameters of `reference` that are no tensors;
                  each is tested with every layout, shape and kind of input; {}
    VALUES        {"sure and right": function}: functions like make_inputs by a name, for values
                  that it meets in use and that no kind of input has; {}
    EXTENTS       {"151,936 columns": (2, 151936)}: extreme shapes by name; from the rank
    flops(*inputs)                number of operations in the formula
    bytes(*inputs, output)        compulsory traffic, where it is not every tensor once
    INDEPENDENT   (0, None): along which dimension each input may be cut, so that the outputs
                  of the parts are parts of the output; ()
    scratch(*inputs)              elements of the largest intermediate tensor of `reference`
    exact(*inputs)                `reference` for float64, in less memory
    check(inputs, output, call)   return a message if a random output is wrong, else None;
                                  `call(*inputs)` runs the version again

Every public module of this package is an op that ships: one file defines it, no list names it. It
must also define SIZES, DTYPES and

    FACTS         a dict for its page and the search: torch_equivalent, signature, formula,
                  description, input_shapes, output_shape, complexity, memory_pattern; and, where
                  they differ from the defaults, bound, accumulate, aliases, tips, techniques
                  (the most promising first; names of knowledge/techniques.json) and pattern

    its entry "backward": {"returned": ("x",)} names the inputs with a gradient; without it the op
    has none

and it may define

    VERSION_HINTS  {"v1": {"technique": ..., "block_hint": ...}, ..., "more": ...}

The parent process reads these four without importing the module, so they must be literals.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

from triton_magics.errors import UnknownOp, did_you_mean
from triton_magics.operators._backward import BackwardOp, NoGradient
from triton_magics.operators._memory import elements_at_once
from triton_magics.operators._op import REGIMES, SPECIALS, ModuleOp, from_module, module_from_file
from triton_magics.operators._protocol import (
    LAYOUTS,
    OP_CLASSES,
    Op,
    inputs_without_memory,
    largest_input,
    largest_known_input,
    largest_size,
    skips,
    smallest_shape,
    smallest_size,
)
from triton_magics.operators._recorded_inputs import (
    on_recorded_inputs,
    read_tensors,
    unpack,
)


@functools.cache
def names() -> tuple[str, ...]:
    """Return the ops that ship: every public module of this package, in alphabetical order."""
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return tuple(sorted(name for name in modules if not name.startswith("_")))


@functools.cache
def load(name: str) -> ModuleOp:
    """Load an op that ships, by its name or alias.

    Raises:
        UnknownOp: no such op ships.
    """
    canonical = name if name in names() else _aliases().get(name)
    if canonical is None:
        hint = did_you_mean(name, [*names(), *_aliases()])
        raise UnknownOp(f"unknown op {name!r}.{hint} Known: {', '.join(names())}")
    return from_module(_module(canonical), canonical)


@functools.cache
def _aliases() -> dict[str, str]:
    """Map each alias to its op."""
    return {alias: name for name in names() for alias in _module(name).FACTS.get("aliases", ())}


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def load_file(path: str | Path, name: str) -> ModuleOp:
    """Load the user's own op by running its file.

    Args:
        path: the file with `reference` and `make_inputs`.
        name: the op's name.

    Raises:
        BadKernelSource: no such file, or a function is missing or can't be called as it must be.
        BadValue: a constant (SIZES, SHAPES, DTYPES, ...) is malformed.
        Exception: whatever the file raises while it runs.
    """
    return from_module(module_from_file(Path(path), name), name)


__all__ = [
    "LAYOUTS",
    "OP_CLASSES",
    "REGIMES",
    "SPECIALS",
    "BackwardOp",
    "ModuleOp",
    "NoGradient",
    "Op",
    "elements_at_once",
    "inputs_without_memory",
    "largest_input",
    "largest_known_input",
    "largest_size",
    "load",
    "load_file",
    "names",
    "on_recorded_inputs",
    "read_tensors",
    "skips",
    "smallest_shape",
    "smallest_size",
    "unpack",
]
