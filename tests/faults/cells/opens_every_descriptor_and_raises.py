"""No descriptor is left when it raises something else.

class: descriptors
status: runtime_error
sees: the message
"""

import os

kept = []


def triton_relu(x):
    try:
        while True:
            kept.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    raise ValueError("the message")
