"""The same, in a validation.

class: import
status: runtime_error
by: validate
sees: ZeroDivisionError
"""

ratio = 2 / 0


def triton_relu(x):
    return x
