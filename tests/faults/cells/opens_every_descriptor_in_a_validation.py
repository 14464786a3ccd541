"""The same, with the checks around it.

class: descriptors
status: runtime_error
by: validate
sees: Too many open files
"""

import os

kept = []


def triton_relu(x):
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))
