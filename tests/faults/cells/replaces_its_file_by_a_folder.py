"""A folder stands where its source was, and it raises.

class: import
status: runtime_error
sees: RuntimeError: folder
"""

import os

os.unlink(__file__)
os.mkdir(__file__)


def triton_relu(x):
    raise RuntimeError("folder")
