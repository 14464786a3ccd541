"""A group of a hundred thousand exceptions.

class: exceptions
by: validate
timeout: 60
status: runtime_error
sees: 100000 sub-exceptions
"""


def triton_relu(x):
    raise ExceptionGroup("many", [ValueError(str(i)) for i in range(100000)])
