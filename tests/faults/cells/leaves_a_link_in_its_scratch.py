"""What is swept is the link, not what it leads to.

class: disk
status: any
"""

import os


def triton_relu(x):
    os.symlink(os.getcwd(), os.path.join(os.environ["TRITON_CACHE_DIR"], "kernels"))
    return x
