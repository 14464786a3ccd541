"""A callback of the garbage collector exits.

class: patches
status: passed
sees: RAN
"""

import gc


def cb(*a):
    raise SystemExit(3)


gc.callbacks.append(cb)


def triton_relu(x):
    gc.collect()
    return x
