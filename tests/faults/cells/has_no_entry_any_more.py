"""The module deletes its entry.

class: import
status: runtime_error
by: validate
sees: triton_relu
"""


def triton_relu(x):
    return x


del triton_relu
