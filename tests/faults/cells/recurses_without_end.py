"""A call of itself.

class: exceptions
status: runtime_error
sees: RecursionError
"""

def triton_relu(x):
    return triton_relu(x)
