"""It frees the one None of its process.

class: damage
status: crashed
sees: its process died
"""

import ctypes


def triton_relu(x):
    ctypes.c_long.from_address(id(None)).value = 1
    for i in range(100):
        a = None
        del a
    return x
