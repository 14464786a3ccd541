"""Output is no progress.

class: output
status: timeout
timeout: 2
sees: still here
"""

import os


def triton_relu(x):
    while True:
        os.write(1, b"still here\n" * 100)
