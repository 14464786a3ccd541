"""C code that follows a null pointer.

class: memory
status: crashed
sees: SIGSEGV(?s:.*)at cell line
"""

import ctypes


def triton_relu(x):
    return ctypes.string_at(0)
