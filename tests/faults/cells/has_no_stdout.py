"""There is no sys.stdout any more.

class: output
status: runtime_error
sees: RuntimeError: quiet
"""

import sys

sys.stdout = sys.stderr = sys.__stdout__ = None


def triton_relu(x):
    print("x")
    raise RuntimeError("quiet")
