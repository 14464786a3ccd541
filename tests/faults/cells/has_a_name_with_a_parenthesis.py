"""The name of its process breaks a careless parser of /proc/PID/stat.

class: processes
status: runtime_error
sees: RuntimeError: renamed
"""

import ctypes


def triton_relu(x):
    ctypes.CDLL(None).prctl(15, b"supervisor) S 1", 0, 0, 0)
    raise RuntimeError("renamed")
