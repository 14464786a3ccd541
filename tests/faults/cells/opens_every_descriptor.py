"""Until the system has no more.

status: runtime_error
sees: Too many open files
"""

import os


def triton_relu(x):
    kept = []
    while True:
        kept.append(open(os.devnull))
