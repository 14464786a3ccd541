"""C code that keeps Python's lock: no thread of its process can act.

class: wrapper
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

import ctypes


def triton_relu(x):
    ctypes.PyDLL(None).sleep(600)
