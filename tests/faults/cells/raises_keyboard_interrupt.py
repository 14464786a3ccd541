"""It only looks like the user's.

class: exceptions
status: runtime_error
sees: KeyboardInterrupt
"""

def triton_relu(x):
    raise KeyboardInterrupt
