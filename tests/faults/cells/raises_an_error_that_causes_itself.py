"""Two exceptions, each the cause of the other.

class: exceptions
status: runtime_error
sees: ValueError
"""


def triton_relu(x):
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    raise first
