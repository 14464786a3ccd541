"""The same, in a validation.

class: exit
status: crashed
by: validate
sees: exit code 0
"""

import os


def triton_relu(x):
    os._exit(0)  # here too
