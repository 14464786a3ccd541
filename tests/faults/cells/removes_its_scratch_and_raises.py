"""Its own folder is gone when it raises.

class: damage
status: runtime_error
sees: the message
"""

import os
import shutil


def triton_relu(x):
    shutil.rmtree(os.environ["TRITON_MAGICS_SCRATCH"])
    raise ValueError("the message")
