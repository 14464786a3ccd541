"""Its scratch is a link, which must not be followed when it is removed.

class: disk
status: runtime_error
sees: RuntimeError: linked
"""

import os
import shutil


def triton_relu(x):
    s = os.environ["TRITON_MAGICS_SCRATCH"]
    shutil.rmtree(s, ignore_errors=True)
    os.symlink(os.getcwd(), s)
    raise RuntimeError("linked")
