"""The folder that its kernels are compiled into.

class: disk
status: any
"""

import os
import shutil


def triton_relu(x):
    shutil.rmtree(os.environ["TRITON_CACHE_DIR"])
    return x
