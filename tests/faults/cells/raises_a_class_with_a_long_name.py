"""An exception whose class has a name of 30 MB.

class: exceptions
status: runtime_error
sees: xxxx
"""


def triton_relu(x):
    raise type("x" * 30_000_000, (Exception,), {})
