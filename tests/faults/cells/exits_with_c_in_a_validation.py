"""C's exit, which runs what is registered for it.

class: exit
status: crashed
by: validate
sees: exit code 4
"""

import ctypes


def triton_relu(x):
    ctypes.CDLL(None).exit(4)
