"""Its own connection with them.

class: descriptors
status: crashed
sees: closed its connection
"""

import os


def triton_relu(x):
    os.closerange(0, 4096)
    return x
