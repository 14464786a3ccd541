"""An end without an answer is a crash, whatever its exit code.

class: exit
status: crashed
sees: exit code 0
"""

import os


def triton_relu(x):
    os._exit(0)
