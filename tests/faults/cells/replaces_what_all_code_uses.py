"""It breaks a builtin for everyone in its process.

class: patches
status: any
"""

import builtins


def triton_relu(x):
    builtins.len = None
    return x
