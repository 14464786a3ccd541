"""The number that CPython gives to each state of a dict: if it is the same, nothing was set.

Each change of a dict takes the next number of the process (`ma_version_tag`, PEP 509). Reading
it touches neither names nor values, of which a worker has 100,000. A trial shows whether this
interpreter has such numbers; 3.11 to 3.13 do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

_HEADER_BYTES = object.__basicsize__  # reference count and type; then the number of entries
_VERSION_AT = _HEADER_BYTES + ctypes.sizeof(ctypes.c_ssize_t)
_Version = ctypes.c_uint64


def version_of(names: Mapping[str, Any]) -> ctypes.c_uint64 | None:
    """Return the number of a module's or a class's names; its `value` is always the current one.

    Args:
        names: what `vars` returns; it must outlive the number.

    Returns:
        None if this interpreter has no such numbers.
    """
    return _read(names) if _HAS_VERSIONS else None


def _read(names: Mapping[str, Any]) -> ctypes.c_uint64:
    address = id(names)
    if type(names) is not dict:  # a view of a class's names, which begins with a pointer to them
        address = ctypes.c_void_p.from_address(address + _HEADER_BYTES).value or 0
    return _Version.from_address(address + _VERSION_AT)


def _has_versions() -> bool:
    """Return whether each change shows in the numbers of sample dicts, and a look does not."""
    module: dict[str, Any] = {"name": 0}
    sample = type("Sample", (), {"name": 0})
    of_module, of_class = _read(module), _read(vars(sample))
    numbers = [of_module.value, of_class.value]
    for value in (1, 2):
        module["name"] = module[f"other {value}"] = value
        setattr(sample, "name", value)  # noqa: B010 (as a version sets it)
        numbers += (of_module.value, of_class.value)
        assert module["name"] == vars(sample)["name"]
        if [of_module.value, of_class.value] != numbers[-2:]:
            return False
    del module["name"]
    return len({*numbers, of_module.value}) == len(numbers) + 1


_HAS_VERSIONS = _has_versions()

__all__ = ["version_of"]
