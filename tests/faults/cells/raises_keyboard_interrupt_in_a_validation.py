"""It looks like the user's, in the midst of the checks.

class: exceptions
status: runtime_error
by: validate
sees: KeyboardInterrupt
"""

def triton_relu(x):
    raise KeyboardInterrupt
