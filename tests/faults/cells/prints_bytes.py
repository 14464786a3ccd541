"""Bytes that are no UTF-8.

class: output
status: passed
sees: caf\\xe9
"""

import os


def triton_relu(x):
    os.write(1, b"caf\xe9 \xff\x00\n")
    return x
