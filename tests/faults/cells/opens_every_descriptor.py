"""Files that are never closed.

class: descriptors
status: runtime_error
sees: Too many open files(?s:.*)close what is opened
"""

import os

kept = []


def triton_relu(x):
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
