"""Its entry is gone, and its module's `__getattr__` exits.

class: import
status: runtime_error
sees: SystemExit
"""


def __getattr__(name):
    raise SystemExit(name)


def triton_relu(x):
    return x


del triton_relu
