"""It empties sys.modules and raises: our own code, which describes the error, fails too.

class: patches
timeout: 60
status: runtime_error
by: validate
sees: outside the version's call
"""

import sys


def triton_relu(x):
    sys.modules.clear()
    raise ValueError
