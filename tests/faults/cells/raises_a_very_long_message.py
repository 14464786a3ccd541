"""An exception with a message of a megabyte, in every case of a validation.

class: exceptions
status: runtime_error
by: validate
sees: characters left out
"""


def triton_relu(x):
    raise RuntimeError(f"the values are {'x' * 1_000_000}")
