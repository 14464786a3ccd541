"""A folder that nobody may read.

class: damage
status: any
"""

import os


def triton_relu(x):
    os.chmod(os.environ["TRITON_MAGICS_SCRATCH"], 0)
    return x
