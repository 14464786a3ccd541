"""What to do about the commonest messages of Triton and CUDA, by a word in them."""

from __future__ import annotations

import re

_HINTS: tuple[tuple[str, str], ...] = (
    (
        r"arange's range must be a power of 2|arange.*power of 2",
        "round up with BLOCK = triton.next_power_of_2(n) and mask the rest",
    ),
    (
        r"arange's arguments must be of type tl\.constexpr",
        "declare the size `BLOCK: tl.constexpr` in the kernel's parameters",
    ),
    (
        r"Cannot call @triton\.jit'd outside of the scope of a kernel",
        "launch it with a grid: kernel[grid](...)",
    ),
    (
        r"Pointer argument.*cannot be accessed|cpu tensor",
        "move every tensor that a kernel gets to the GPU",
    ),
    (
        r"is not defined|NameError",
        "a global inside a kernel must be a tl.constexpr; check the name",
    ),
    (
        r"out of resource|OutOfResources|shared memory.*Required",
        "use smaller blocks, fewer num_stages or more num_warps",
    ),
    (
        r"Mismatched type for .* between then block|Loop-carried variable .* has initial type",
        "give both branches, or the value before and in the loop, the same dtype and shape",
    ),
    (
        r"incompatible dimensions|cannot broadcast|Cannot make_shape_compatible",
        "add the missing axis with [:, None] or [None, :]",
    ),
    (
        r"Input shapes should have M >= |should have.*>= 16|K >= 16",
        "tl.dot needs blocks of at least 16 in each dimension",
    ),
    (
        r"Unsupported conditional branch|return.*inside.*if|Cannot return",
        "a kernel can't return inside a branch: use a mask or tl.where",
    ),
    (r"int object has no attribute|'int' object", "this value is a Python number, not a tensor"),
    (
        r"Too many open files",
        "close what is opened (`with open(...)`): a worker may have about a thousand at a time",
    ),
    (r"illegal memory access", "a load or store goes outside its tensor: check masks and strides"),
    (r"misaligned address", "an offset or a tl.multiple_of promise does not hold for this input"),
    (r"device-side assert", "a tl.device_assert failed, or an index is out of range"),
    (r"unexpected keyword argument|unrecognised", "the name is not a parameter of the kernel"),
    (
        r"missing \d+ required positional argument",
        "the launch gives fewer arguments than the kernel takes",
    ),
    (
        r"module 'triton\.language' has no attribute|has no attribute",
        "the name is not in this Triton: %triton_ref syntax lists those that are",
    ),
)


def hint_for(message: str) -> str | None:
    """One line of advice for an error message, or None."""
    return next((hint for pattern, hint in _HINTS if re.search(pattern, message)), None)
