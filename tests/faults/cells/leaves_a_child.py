"""A process that goes on after the answer.

class: processes
status: passed
"""

import subprocess


def triton_relu(x):
    subprocess.Popen(["sleep", "600"])
    return x
