"""An import that fails.

class: import
status: runtime_error
sees: ZeroDivisionError
"""

ratio = 1 / 0


def triton_relu(x):
    return x
