"""The same, as the module is imported.

class: import
status: runtime_error
sees: SystemExit
"""

import sys

sys.exit(0)


def triton_relu(x):
    return x
