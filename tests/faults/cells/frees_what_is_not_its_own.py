"""C's memory is given back twice.

class: memory
status: crashed
sees: SIGABRT|SIGSEGV
"""

import ctypes


def triton_relu(x):
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = libc.malloc(64)
    libc.free(ctypes.c_void_p(block + 16))
