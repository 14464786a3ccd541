"""Its message is a number that can't be written out later.

class: limits
status: runtime_error
sees: RuntimeError: 1000
"""

import sys


def triton_relu(x):
    sys.set_int_max_str_digits(640)
    raise RuntimeError(10**600)
