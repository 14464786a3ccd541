"""A lock in its cache that nobody will release.

class: disk
status: any
"""

import os


def triton_relu(x):
    open(os.path.join(os.environ["TRITON_CACHE_DIR"], "lock"), "w").close()
    return x
