"""A module that only the cross-compiler can't import.

class: import
status: crashed
by: write
sees: SIGABRT
"""

import os

if not os.environ.get("TRITON_INTERPRET"):
    os.abort()


def triton_relu(x):
    return x
