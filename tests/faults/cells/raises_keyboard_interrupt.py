"""It only looks like the user's.

status: runtime_error
sees: KeyboardInterrupt
"""

def triton_relu(x):
    raise KeyboardInterrupt
