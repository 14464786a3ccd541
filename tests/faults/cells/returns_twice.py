"""A fork whose two sides both go on and answer.

class: processes
status: any
"""

import os


def triton_relu(x):
    os.fork()
    return x
