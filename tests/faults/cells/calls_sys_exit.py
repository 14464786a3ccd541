"""An exit that Python can catch.

class: exit
status: runtime_error
sees: SystemExit
"""

import sys


def triton_relu(x):
    sys.exit(0)
