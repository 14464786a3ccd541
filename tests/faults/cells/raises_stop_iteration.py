"""An exception that loops end with.

class: exceptions
status: runtime_error
sees: StopIteration
"""

def triton_relu(x):
    return next(iter(()))
