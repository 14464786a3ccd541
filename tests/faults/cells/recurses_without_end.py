"""A call of itself.

status: runtime_error
sees: RecursionError
"""

def triton_relu(x):
    return triton_relu(x)
