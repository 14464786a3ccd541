"""Another program in its place, which ends with 0.

class: processes
status: crashed
sees: exit code 0
"""

import os


def triton_relu(x):
    os.execvp("true", ["true"])
