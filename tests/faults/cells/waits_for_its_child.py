"""A child that sleeps, waited for.

class: processes
status: timeout
timeout: 2
sees: not done in 2 s(?s:.*)at cell line
"""

import subprocess


def triton_relu(x):
    subprocess.run(["sleep", "600"])
