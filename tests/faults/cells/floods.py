"""50 MB of output: the beginning and the end are kept.

class: output
status: passed
sees: bytes dropped
"""

import os


def triton_relu(x):
    print("the beginning")
    for _ in range(50):
        os.write(1, b"x" * 2**20)
    print("the end")
    return x
