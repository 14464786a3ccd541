"""It empties sys.modules and raises: our own code imports what it needs again, and fails.

class: patches
timeout: 60
status: rejected
by: validate
sees: ValueError
"""

import sys


def triton_relu(x):
    sys.modules.clear()
    raise ValueError
