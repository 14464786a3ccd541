"""An exit that Python can catch, in a validation.

class: exit
status: runtime_error
by: validate
sees: SystemExit
"""

import sys


def triton_relu(x):
    sys.exit(0)  # here too
