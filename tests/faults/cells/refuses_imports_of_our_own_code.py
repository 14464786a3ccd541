"""Its import hook refuses every module of this package.

class: import
status: passed
sees: RAN
"""

import builtins

_i = builtins.__import__


def hook(name, *a, **k):
    if name.startswith("triton_magics"):
        raise MemoryError("no import")
    return _i(name, *a, **k)


builtins.__import__ = hook


def triton_relu(x):
    return x
