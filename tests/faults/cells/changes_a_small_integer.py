"""Seven is eight from now on.

class: damage
status: runtime_error
sees: RuntimeError: 8
"""

import ctypes


def triton_relu(x):
    ctypes.c_uint32.from_address(id(7) + 24).value = 8
    raise RuntimeError(str(7))
