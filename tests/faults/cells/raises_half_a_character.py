"""A message that no UTF-8 can carry.

class: exceptions
status: runtime_error
sees: ValueError
"""

def triton_relu(x):
    raise ValueError("caf\udce9")
